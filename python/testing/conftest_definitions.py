"""conftest_definitions - loads the definitions of the dataset and computes the lengths of their axes. `reftest generate`
appends this file, from its first dashed line on, to conftest.py, which contains the imports."""

# ruff: noqa: F821


# ---- definitions and axes -------------------------------------------------------------------------------------------


@functools.cache
def _definition_text(op_type, name):
    return (ROOT / "definitions" / op_type / f"{name}.json").read_text(encoding="utf-8")


def load_definition(op_type, name):
    """Loads a definition from its JSON file. Moves the inputs that no case passes (see
    is_left_out) from "inputs" to "left_out". The op_type is the name of the file's
    folder."""
    definition = json.loads(_definition_text(op_type, name)) | {"op_type": op_type}
    for spec in [*definition["inputs"].values(), *definition["outputs"].values()]:
        for size in spec["shape"] or ():
            definition["axes"].setdefault(size, {"type": "expr", "expression": size})
    left_out = {
        name: spec for name, spec in definition["inputs"].items() if is_left_out(spec)
    }
    inputs = {
        name: spec
        for name, spec in definition["inputs"].items()
        if name not in left_out
    }
    return {**definition, "inputs": inputs, "left_out": left_out}


def is_left_out(spec):
    """Returns true for an input that no case passes: an input that is a string or a
    dtype, or an optional input whose dtype is unknown. dataset/definition_parse.c of
    reftest has the same rule."""
    return (
        spec["dtype"] in ("string", "str", "dtype")
        or spec["dtype"] == "unknown"
        and bool(spec.get("optional"))
    )


def fitting_of(definition):
    """Returns the argument `fitting` that the function `fitted` needs for this definition."""
    left_out = [
        argument
        for name, spec in definition["left_out"].items()
        for argument in (name, spec.get("param"))
        if argument
    ]
    inputs = {
        name: (spec.get("param") or name, bool(spec.get("optional")))
        for name, spec in definition["inputs"].items()
    }
    return {"left_out": left_out, "inputs": inputs}


def definition_of(test):
    """Returns the definition of a test. If a constraint fixes the length of an axis, the axis becomes a const axis."""
    definition = load_definition(test.OP_TYPE, test.NAME)
    fixed = {
        name: {"type": "const", "value": length}
        for name, length in test.AXES.items()
        if length is not None
    }
    axes = {
        name: fixed.get(name, axis) if length_of(axis) is None else axis
        for name, axis in definition["axes"].items()
    }
    return {**definition, "axes": axes}


def length_of(axis):
    """Returns the length of a const axis of a definition, or None if the axis is variable. An axis with a value but
    without a type is const. As in `reftest verify`, the length may also be a string of digits, or true, which means
    1."""
    kind = axis.get("type", "const" if "value" in axis else "var")
    return int(axis["value"]) if kind == "const" else None


# The operators in the expressions of axes.
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def expression_value(text, axes):
    """Returns the value of `text`, an expression with names of axes. Raises KeyError if
    an axis in the expression has no value."""

    def value(node):
        if isinstance(node, ast.Name):
            return axes[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        operands = (
            [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        )
        return OPERATORS[type(node.op)](*map(value, operands))

    found = value(ast.parse(text.strip(), mode="eval").body)
    if found != int(found) or found < 0:
        raise ValueError(f"{text} is {found}, not a length")
    return int(found)


def computed_axes(definition, axes):
    """Returns the values of the const axes, of the axes in `axes`, and of all axes whose expressions can be computed
    from these. Raises ValueError if the value of an axis differs from its expression."""
    axes = {
        name: length_of(axis)
        for name, axis in definition["axes"].items()
        if length_of(axis) is not None
    } | dict(axes)
    for _ in definition["axes"]:
        for name, axis in definition["axes"].items():
            if axis.get("type") != "expr":
                continue
            with contextlib.suppress(KeyError):
                value = expression_value(axis["expression"], axes)
                if axes.setdefault(name, value) != value:
                    raise ValueError(f"axis {name} is {axes[name]}, not {value}")
    return axes


def resolve_axes(definition, axes):
    """Returns the value of every axis. Const axes have the definition's value, and variable axes have the value in
    `axes`."""
    return {
        name: axes[name] if length_of(axis) is None else length_of(axis)
        for name, axis in definition["axes"].items()
    }


def shape_of(spec, axes):
    return tuple(axes[axis] for axis in spec["shape"])


def dtype_of(spec):
    if spec["dtype"] not in DTYPES:
        raise Unavailable(f"this torch cannot create {spec['dtype']}")
    return DTYPES[spec["dtype"]]
