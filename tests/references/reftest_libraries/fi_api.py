# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: d58fc08bb6be3cd3b4360a7ef87f15de
# fmt: off
# ruff: noqa
"""fi_api - calls the FlashInfer function that is named in a definition's tag `fi_api:`, and passes the definition's
inputs as its arguments. The only row of the table has the family "*", which stands for every definition, even a
definition without an op family.

Only functions that FlashInfer itself defines are called, because a definition is not trusted and could name any
function."""

import importlib
import inspect

from reftest_providers import Need, Row, Table, Unavailable

NEEDS = (
    Need(("flashinfer-python", "flashinfer"), "flashinfer", (0, 3)),
    Need(("flashinfer-cubin",), optional=True),
    Need(("flashinfer-jit-cache",), optional=True),
)


def function_named(dotted):
    """Returns the function with a dotted name such as "flashinfer.norm.rmsnorm". Raises Unavailable if FlashInfer has
    no such function, or if another package defines it."""
    parts = dotted.split(".")
    if parts[0] != "flashinfer" or len(parts) < 2 or any(part.startswith("_") for part in parts):
        raise Unavailable("the tag fi_api:%s names no public function of FlashInfer" % dotted)
    module = importlib.import_module("flashinfer")
    at = module
    for index, part in enumerate(parts[1:], 1):
        if not hasattr(at, part) and inspect.ismodule(at):
            try:
                importlib.import_module(".".join(parts[: index + 1]))
            except ImportError as problem:
                raise Unavailable("this FlashInfer has no %s: %s" % (dotted, problem)) from problem
        at = getattr(at, part, None)
        if at is None:
            raise Unavailable("this FlashInfer has no %s" % dotted)
        if inspect.isclass(at):
            raise Unavailable("%s is a method, but only functions can be called" % dotted)
    if not callable(at) or not str(getattr(at, "__module__", "")).split(".")[0] == "flashinfer":
        raise Unavailable("%s is not a function that FlashInfer defines" % dotted)
    return at


def arguments_of(call, function):
    """Returns {argument of the function: value}. An input is passed as the argument that its member `param` names, if
    the function has this argument, else as the argument with the input's own name."""
    parameters = inspect.signature(function).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    given = {}
    for name, value in call.inputs.items():
        argument = call.arguments.get(name) or name
        argument = argument if argument in parameters else name
        if value is None:
            continue
        if argument not in parameters and not takes_any:
            raise Unavailable("the function has no argument for the input '%s'" % name)
        given[argument] = value
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in given
               and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    if missing:
        raise Unavailable("the definition has no input for the argument '%s' of the function" % missing[0])
    return given


def fi_api(call):
    function = function_named(call.api)
    result = function(**arguments_of(call, function))
    if result is None:
        names = [spec["name"] for spec in call.outputs]
        if any(call.inputs.get(name) is None for name in names):
            raise Unavailable("the function returns nothing, and no input has the name of the output")
        result = [call.inputs[name] for name in names]
    return result


TABLES = (Table("fi_api", NEEDS, {"*": Row(fi_api)}),)
