"""arguments - passes the inputs of a case to the parameters of a reference's function. The runner loads this file.
`reftest generate` also copies the part of this file that begins at the first dashed line, and appends it to conftest.py
of the generated tests (testgen/support_files.h)."""

import inspect
import keyword


# ---- arguments of a reference ---------------------------------------------------------------------------------------


def is_argument(name):
    """Can an argument of a Python function have this name?"""
    return name.isidentifier() and not keyword.iskeyword(name)


def fitted(run, fitting):
    """Returns a function that gets the inputs by name and calls `run`, whose parameters may differ from the inputs.
    For each input, `fitting` gives the name of its parameter in the definition (by default the input's own name), and
    whether the input is optional. `fitting` also lists the parameters that no case passes ("left_out"). If `fitting` is
    None, the inputs are named like the parameters, and `run` itself is returned.

    - An input is passed as the parameter with the input's own name, or else as the parameter that `fitting` gives.
    - If the value of an input is None, the default of the parameter is used.
    - A parameter in "left_out" without a default gets None.
    - An optional input for which `run` has no parameter is not passed.
    - An input whose name cannot be the name of a parameter is passed as the next parameter that has no input.
    - If these rules leave exactly one input without a parameter, and exactly one parameter without an input or a
      default, and both have the same position, then the input is passed as this parameter."""
    if fitting is None:
        return run
    given, left_out = fitting["inputs"], fitting["left_out"]
    parameters = inspect.signature(run).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    defaults = {
        name: p.default
        for name, p in parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }
    missing = inspect.Parameter.empty
    taken = {*left_out, *given, *(argument for argument, _ in given.values())}
    free = [
        name
        for name, p in parameters.items()
        if p.kind is p.POSITIONAL_OR_KEYWORD and name not in taken
    ]
    unnamed = [
        name
        for name, (argument, _) in given.items()
        if argument == name and not is_argument(name)
    ]
    places = dict(zip(unnamed, free))
    alone = [
        name
        for name, (argument, optional) in given.items()
        if name not in defaults and argument not in defaults and not optional
    ]
    needed = [name for name in free if parameters[name].default is missing]
    if len(alone) == len(needed) == 1:
        at = list(given).index(alone[0])
        if at == list(parameters).index(needed[0]):
            places[alone[0]] = needed[0]

    def call(**inputs):
        arguments = {name: None for name in left_out if defaults.get(name) is missing}
        for name, value in inputs.items():
            argument, optional = given[name]
            argument = places.get(name, argument)
            if name in defaults or argument not in defaults:
                argument = name
            if value is None and defaults.get(argument) is not missing:
                continue
            if argument in defaults or takes_any or not optional:
                arguments[argument] = value
        return run(**arguments)

    return call
