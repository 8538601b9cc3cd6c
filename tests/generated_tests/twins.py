"""twins.py - checks that the tests generated for a definition do not depend on the names and the order of its inputs
and outputs: twins.py SUFFIX

Run the script in the root of a dataset with generated tests. For each definition NAME, the dataset has a twin, NAME +
SUFFIX. The member "twin" of this second definition maps the names of inputs and outputs in NAME to those in the twin.
Prints a line for each pair of definitions, and a line for each library that computed the same outputs for both."""

import importlib
import pathlib
import sys

sys.path.insert(0, "tests/references")
import conftest
import torch

HOST = torch.device("cpu")


def renamed(values, names):
    return {names.get(name, name): value for name, value in dict(values).items()}


def by_output(test, rows):
    return dict(zip(conftest.definition_of(test)["outputs"], rows, strict=True))


def left_values(entry, names):
    """Returns an entry of the test class's LEAVES in which the name of the output is replaced by its name in the
    twin."""
    if isinstance(entry, str):
        return names.get(entry, entry)
    return entry._replace(output=names.get(entry.output, entry.output))


def facts(test, names):
    """Returns the attributes of the class that describe the operation, with the names that the twin uses."""
    return {
        "roles": {role: names.get(x, x) for role, x in test.ROLES.items()},
        "outputs": {role: names.get(x, x) for role, x in test.OUTPUT_ROLES.items()},
        "modes": (test.FAMILY, test.MODES),
        "sizes": [(repr(case), case.axes) for case in (*test.SIZES, *test.EDGES)],
        "scalars": renamed(test.SCALARS, names),
        "rules": renamed(by_output(test, test.RULES), names),
        "leaves": renamed(
            {name: left_values(x, names) for name, x in test.LEAVES.items()}, names
        ),
        "omitted": [names.get(name, name) for name in test.OMITTED],
        "default numbers": renamed(test.DEFAULT_NUMBERS, names),
        "constants": dict(conftest.constants_of(test)),
    }


def plain_integers(test, names):
    """Generates inputs. Returns only the integer inputs, whose values depend only on their roles. (The values of float
    inputs also depend on the order of the inputs.)"""
    try:
        inputs = conftest.Plain(test, test.SIZES[0], {}, 0, "").inputs(HOST)
    except conftest.Unavailable as why:
        return str(why).partition("'")[0]
    return {
        names.get(name, name): value.tolist()
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and not value.is_floating_point()
    }


def answers(test, inputs):
    """Returns {library: its outputs by name, or the reason why it computed none}."""
    found = {}
    for name in conftest.ground_truths(test.FAMILY):
        try:
            truth = conftest.ground_truth(test, test.SIZES[0], inputs, name)
            found[name] = by_output(test, truth.outputs)
        except conftest.Unavailable as why:
            found[name] = str(why)
    return found


def compare(name, one, two, names):
    usual, other = facts(one, names), facts(two, {})
    for fact, value in usual.items():
        assert value == other[fact], f"{name}: other {fact}: {value}, {other[fact]}"
    assert plain_integers(one, names) == plain_integers(two, {}), (
        f"{name}: other integers"
    )
    inputs = conftest.make_inputs(one, one.SIZES[0], HOST)
    given = renamed(inputs, names)
    specs = conftest.definition_of(two)["inputs"]
    in_order = {key: given[key] for key in specs}
    for key, value in in_order.items():
        if isinstance(value, torch.Tensor):
            in_order[key] = value.to(conftest.dtype_of(specs[key]))
    other = answers(two, in_order)
    for library, found in answers(one, inputs).items():
        if isinstance(found, str):
            assert found == other[library], (
                f"{name}: {library}: {found}, {other[library]}"
            )
            print("passed over", library, name)
            continue
        assert renamed(found, names).keys() == other[library].keys()
        for output, value in renamed(found, names).items():
            assert conftest.same_bits(value, other[library][output]), (
                f"{name}: {library} has another {output}"
            )
        print("same", library, name)


def main(suffix):
    for path in sorted(pathlib.Path("tests/references").glob("test_*.py")):
        module = importlib.import_module(path.stem)
        tests = {x.NAME: x for x in vars(module).values() if hasattr(x, "NAME")}
        for name in [name for name in tests if name + suffix in tests]:
            two = tests[name + suffix]
            compare(name, tests[name], two, conftest.definition_of(two)["twin"])


if __name__ == "__main__":
    main(*sys.argv[1:])
