#!/usr/bin/env python3
"""sweep.py - plants one small change into every expression of the starter references: sweep.py BUILD ROOT [options].

The other tables of this directory have mistakes that somebody thought of. This file has no list of mistakes. Instead,
it has changes for each kind of expression (a float tensor, an integer tensor, a number, a comparison, …). Every
expression of every reference gets all changes that apply to it. Most of the mutants are obviously wrong, and some
compute the same values as the original. The interesting mutants are those that pass. For such a mutant, no input shows
the difference from the original, or the tolerance allows the difference, or the mutant computes the same values. A
person must find out which of these three reasons applies.

First, the script runs each mutant on the two smallest cases, with the inputs, ground truth and bounds of `reftest
verify`. Mutants that fail are only counted. The other mutants are written as a dataset to ROOT/definitions, with a row
for each mutant in ROOT/index.json. To verify this dataset and print the mutants that pass:

  PYTHONPATH=$(echo .venv/lib/python3*/site-packages) .venv-tests/bin/python tests/mutants/sweep.py build ROOT
  build/reftest --root ROOT verify --all --no-workloads --ground-truth builtin --no-diagnosis --format json > FOUND.json
  tests/mutants/sweep.py --survivors ROOT/index.json FOUND.json

The interpreter needs torch and pytest, because the generated tests of tests/references make the inputs.
"""
import argparse
import ast
import collections
import copy
import glob
import hashlib
import importlib
import json
import os
import signal
import sys
import time

import run as planted

LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
FLOATS = ("float32", "float16", "bfloat16")
NARROWER = {
    "float32": ("bfloat16", "float16", "float8_e4m3fn"),
    "float16": ("bfloat16",),
    "bfloat16": ("float16",),
}
# Functions that mutants may need. The functions that a mutant calls are put before its code.
HELPERS = {
    "_zero_after": """
def _zero_after(x, dim, n):
    x = x.clone()
    x.narrow(dim, min(n, x.shape[dim]), max(x.shape[dim] - n, 0)).zero_()
    return x
""",
    "_same_after": """
def _same_after(x, dim, n):
    return x.index_select(dim, torch.arange(x.shape[dim], device=x.device).clamp(max=n - 1))
""",
    "_wrap_after": """
def _wrap_after(x, dim, n):
    return x.index_select(dim, torch.arange(x.shape[dim], device=x.device) % n)
""",
    "_same_number": """
def _same_number(x):
    return x.flatten()[:1].expand(x.numel()).reshape(x.shape).clone() if x.numel() else x
""",
    "_where": """
def _where(x, out, value):
    return torch.where(out, torch.full_like(x, value), x)
""",
}


class Seen:
    """The values that an expression had while the original ran: the `kind` (tensor, int, float, bool, none, other) and,
    for a tensor, the dtype, the shapes, and whether elements were negative or infinite."""

    def __init__(self):
        self.kinds, self.dtypes, self.shapes = set(), set(), set()
        self.negative = self.infinite = False

    def add(self, value, torch):
        if isinstance(value, torch.Tensor):
            self.kinds.add("tensor")
            self.dtypes.add(str(value.dtype)[6:])
            if len(self.shapes) < 40:
                self.shapes.add(tuple(value.shape))
            if value.dtype in (torch.float32, torch.float16, torch.bfloat16):
                self.negative = self.negative or bool((value < 0).any())
                self.infinite = self.infinite or bool(value.isinf().any())
        else:
            kind = type(value).__name__
            self.kinds.add({"NoneType": "none"}.get(kind, kind if kind in ("int", "float", "bool") else "other"))

    @property
    def kind(self):
        return next(iter(self.kinds)) if len(self.kinds) == 1 else "other"

    @property
    def dtype(self):
        return next(iter(self.dtypes)) if len(self.dtypes) == 1 else None

    @property
    def rank(self):
        ranks = {len(shape) for shape in self.shapes}
        return ranks.pop() if len(ranks) == 1 else None

    def lengths(self, dim):
        return {shape[dim] for shape in self.shapes}


def filled(template, **nodes):
    """Parses a template such as "X.clamp(max=1.0)" and returns its expression. The node that is passed as X replaces
    the name X."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, name):
            return copy.deepcopy(nodes[name.id]) if name.id in nodes else name

    return Fill().visit(ast.parse(template, mode="eval").body)


# ---- what happens to the value of an expression ---------------------------------------------------------------------


def float_templates(seen):
    """Yields (operator, template). In a template, X stands for the float tensor."""
    for name in NARROWER.get(seen.dtype, ()):
        yield f"by way of {name}", f"X.to(torch.{name}).to(torch.{seen.dtype})"
    for limit in (0.0, 1e-20, 1e-10, 1e-6, 1e-3, 0.1):
        yield f"at least {limit:g}", f"X.clamp(min={limit!r})"
    for limit in (0.0, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 448.0, 1e4, 65504.0):
        yield f"at most {limit:g}", f"X.clamp(max={limit!r})"
    for limit in (1.0, 5.0, 10.0, 20.0, 50.0, 100.0, 448.0, 1e4, 65504.0) if seen.negative else ():
        yield f"between -{limit:g} and {limit:g}", f"X.clamp(-{limit!r}, {limit!r})"
        yield f"at least -{limit:g}", f"X.clamp(min=-{limit!r})"
    for limit in (1e-38, 1e-10, 1e-6, 1e-4, 1e-3, 0.01, 0.1):
        yield f"0 if its magnitude is below {limit:g}", f"_where(X, X.abs() < {limit!r}, 0.0)"
    for limit in (1.0, 10.0, 50.0, 448.0, 65504.0):
        yield f"0 if its magnitude is above {limit:g}", f"_where(X, X.abs() > {limit!r}, 0.0)"
    yield "1 if it is 0", "_where(X, X == 0, 1.0)"
    yield "1e-5 more", "(X + 1e-5)"
    yield "1e-6 more", "(X + 1e-6)"
    if seen.negative:
        yield "magnitude", "X.abs()"
    yield "no infinity", "X.nan_to_num()"
    if seen.infinite:
        yield "infinities taken for 0", "X.nan_to_num(0.0, 0.0, 0.0)"
        yield "-inf taken for -10000", "X.nan_to_num(neginf=-10000.0)"
        yield "-inf taken for -1e30", "X.nan_to_num(neginf=-1e30)"
    yield "negated", "(-X)"
    yield "half an unit more", "(X * 1.004)"
    yield "rounded to an integer", "X.round()"


def integer_templates(seen):
    yield "by way of float16", f"X.to(torch.float16).to(torch.{seen.dtype})"
    yield "by way of bfloat16", f"X.to(torch.bfloat16).to(torch.{seen.dtype})"
    for bits in (7, 8, 10, 11, 12, 15, 16):
        yield f"of {bits} bits", f"(X & {2 ** bits - 1})"
    for bits in (8, 16):
        yield f"by way of int{bits}", f"X.to(torch.int{bits}).to(torch.{seen.dtype})"
    for limit in (0, 1, 8, 64, 1024, 4096, 8192, 131071):
        yield f"at most {limit}", f"X.clamp(max={limit})"
    for limit in (0, 1):
        yield f"at least {limit}", f"X.clamp(min={limit})"
    yield "1 more", "(X + 1)"
    yield "1 less", "(X - 1)"
    yield "sorted", "X.sort(dim=-1).values"
    yield "the same everywhere", "_same_number(X)"
    yield "magnitude", "X.abs()"


def bool_templates(_):
    yield "inverted", "~X"
    yield "all true", "torch.ones_like(X)"
    yield "all false", "torch.zeros_like(X)"
    yield "the same everywhere", "_same_number(X)"


def axis_templates(seen):
    """Yields (operator, template) for each axis of a tensor."""
    for dim in range(seen.rank or 0):
        lengths = seen.lengths(dim)
        longest, fixed = max(lengths), len(lengths) == 1
        if longest <= 1 and fixed:
            continue
        if fixed:
            counts = {n for n in (1, longest // 2, longest - 1, longest - 8, 16, 128, 1024) if 0 < n < longest}
        else:
            counts = LENGTHS
        for n in sorted(counts):
            yield f"only {n} of axis {dim}", f"_zero_after(X, {dim}, {n})"
            yield f"number {n} for those after it, axis {dim}", f"_same_after(X, {dim}, {n})"
            yield f"again from the first after {n}, axis {dim}", f"_wrap_after(X, {dim}, {n})"
        yield f"the neighbour of axis {dim}", f"X.roll(1, {dim})"
        yield f"reversed axis {dim}", f"X.flip({dim})"
        yield f"first of axis {dim} left out", f"torch.cat((torch.zeros_like(X.narrow({dim}, 0, 1)), X.narrow({dim}, 1, X.shape[{dim}] - 1)), {dim})"
        yield f"last of axis {dim} left out", f"_zero_after(X, {dim}, X.shape[{dim}] - 1)"
        for other in range(dim):
            if all(shape[dim] == shape[other] for shape in seen.shapes):
                yield f"axes {other} and {dim} swapped", f"X.transpose({other}, {dim})"


def number_templates(seen):
    if seen.kind == "float":
        yield "by way of bfloat16", "float(torch.tensor(X, dtype=torch.bfloat16))"
        yield "by way of float16", "float(torch.tensor(X, dtype=torch.float16))"
        yield "by way of float32", "float(torch.tensor(X, dtype=torch.float32))"
        for number in ("1.0", "0.0", "0.5", "abs(X)", "-X", "min(X, 1.0)", "max(X, 1e-6)", "max(X, 0.1)", "float(int(X))", "X * 2"):
            yield number.replace("X", "it"), f"({number})"
    elif seen.kind == "int":
        for number in ("X + 1", "X - 1", "X * 2", "X // 2", "min(X, 1)", "max(X, 1)", "min(X, 128)", "min(X, 1024)", "min(X, 4096)", "X // 8 * 8", "X // 64 * 64", "abs(X)", "X % 256", "X % 4096"):
            yield number.replace("X", "it"), f"({number})"
    elif seen.kind == "bool":
        for number in ("True", "False", "not X"):
            yield number.replace("X", "it"), f"({number})"


def value_changes(seen):
    if seen.kind == "tensor" and seen.dtype in FLOATS:
        yield from float_templates(seen)
    if seen.kind == "tensor" and seen.dtype in ("int16", "int32", "int64", "uint8"):
        yield from integer_templates(seen)
    if seen.kind == "tensor" and seen.dtype == "bool":
        yield from bool_templates(seen)
    if seen.kind == "tensor" and seen.dtype is not None and seen.rank:
        yield from axis_templates(seen)
    yield from number_templates(seen)


# ---- what happens to an expression because of its form --------------------------------------------------------------

OTHER_OPERATOR = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.Add), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mod,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,),
    ast.RShift: (ast.LShift,), ast.MatMult: (),
}
OTHER_COMPARISON = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}
OTHER_FUNCTION = {
    "exp": ("exp2", "expm1"), "exp2": ("exp",), "log": ("log2", "log1p"), "log2": ("log",), "sum": ("mean", "amax"),
    "mean": ("sum", "median"), "amax": ("amin", "sum", "mean"), "maximum": ("minimum", "add"), "rsqrt": ("reciprocal",),
    "square": ("abs",), "sigmoid": ("tanh",), "softplus": ("relu", "silu"), "silu": ("gelu", "relu"), "gelu": ("silu",),
    "relu": ("abs",), "erf": ("tanh",), "logaddexp2": ("logaddexp", "maximum"), "logsumexp": ("amax", "sum"),
    "cumsum": ("cumprod",), "tril": ("triu",), "softmax": ("log_softmax",), "cos": ("sin",), "sin": ("cos",),
    "topk": (), "floor": ("round",),
}
# (operator, template) for calls of a function or method. In a template, X stands for the first tensor.
CALL_TEMPLATES = {
    "softplus": (
        ("linear above 5", "torch.nn.functional.softplus(X, threshold=5.0)"),
        ("linear above 10", "torch.nn.functional.softplus(X, threshold=10.0)"),
        ("by log1p", "torch.log1p(torch.exp(X))"),
        ("by log", "torch.log(1 + torch.exp(X))"),
        ("with beta 2", "torch.nn.functional.softplus(X, beta=2.0)"),
    ),
    "sigmoid": (
        ("by exp(x)", "(torch.exp(X) / (1 + torch.exp(X)))"),
        ("hard", "torch.nn.functional.hardsigmoid(X)"),
        ("by tanh", "(0.5 + 0.5 * torch.tanh(0.5 * X))"),
    ),
    "silu": (
        ("by exp(x)", "(X * torch.exp(X) / (1 + torch.exp(X)))"),
        ("of 1.702 x", "(X * torch.sigmoid(1.702 * X))"),
        ("hard", "torch.nn.functional.hardswish(X)"),
    ),
    "softmax": (
        ("without the maximum", "(torch.exp(X) / torch.exp(X).sum(dim=-1, keepdim=True))"),
        ("of numbers below 50", "torch.softmax(X.clamp(max=50.0), dim=-1)"),
        ("of the negated", "torch.softmax(-X, dim=-1)"),
        ("over axis 0", "torch.softmax(X, dim=0)"),
        ("with 1e-6 beside the sum", "(lambda e: e / (e.sum(dim=-1, keepdim=True) + 1e-6))(torch.exp(X - X.amax(dim=-1, keepdim=True)))"),
        ("with 1 beside the sum", "(lambda e: e / (e.sum(dim=-1, keepdim=True) + 1))(torch.exp(X - X.amax(dim=-1, keepdim=True)))"),
        ("with the largest magnitude", "(lambda e: e / e.sum(dim=-1, keepdim=True))(torch.exp(X - X.abs().amax(dim=-1, keepdim=True)))"),
    ),
    "cumsum": (
        ("without its own", "(X.cumsum(dim=DIM) - X)"),
        ("in bfloat16", "X.bfloat16().cumsum(dim=DIM).float()"),
        ("in float16", "X.half().cumsum(dim=DIM).float()"),
    ),
    "square": (("of float16", "X.half().square().float()"),),
    "topk": (),
    "sort": (),
}


def call_name(node):
    if not isinstance(node, ast.Call):
        return None
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def is_module(node):
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "math") or (
        isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.nn.functional", "torch.linalg")
    )


def first_tensor(call, seen):
    """Returns the object of a method call, or the first argument of a function, if it is a tensor."""
    method = isinstance(call.func, ast.Attribute) and not is_module(call.func.value)
    node = call.func.value if method else (call.args[0] if call.args else None)
    return node if node is not None and node in seen and seen[node].kind == "tensor" else None


def constant_changes(node):
    value = node.value
    if isinstance(value, bool):
        yield f"{not value}", ast.Constant(not value)
    elif isinstance(value, int):
        for other in sorted({value + 1, value - 1, value * 2, value // 2} - {value}):
            yield f"{other} for {value}", ast.Constant(other)
    elif isinstance(value, float):
        for other in (value * 10, value / 10, value * 2, value / 2, value * 1.01, value + 1, 0.0):
            if other != value:
                yield f"{other:g} for {value:g}", ast.Constant(other)


def binary_changes(node):
    for other in OTHER_OPERATOR.get(type(node.op), ()):
        yield f"{other.__name__} for {type(node.op).__name__}", ast.BinOp(node.left, other(), node.right)
    yield "without what is left of the operator", node.right
    yield "without what is right of the operator", node.left


def compare_changes(node):
    for at, operation in enumerate(node.ops):
        for other in OTHER_COMPARISON.get(type(operation), ()):
            operations = list(node.ops)
            operations[at] = other()
            yield f"{other.__name__} for {type(operation).__name__}", ast.Compare(node.left, operations, node.comparators)


def call_changes(node, seen):
    name, first = call_name(node), None
    if name is None:
        return
    first = first_tensor(node, seen)
    if first is not None and node in seen and seen[node].kind == "tensor":
        yield f"without {name}()", first
    for other in OTHER_FUNCTION.get(name, ()):
        call = copy.deepcopy(node)
        if isinstance(call.func, ast.Attribute):
            call.func.attr = other
            if other in ("exp2", "expm1", "log1p", "sum", "cumprod") and is_module(call.func.value):
                call.func.value = ast.Name("torch", ast.Load())
            yield f"{other}() for {name}()", call
    if first is not None:
        dims = [k.value for k in node.keywords if k.arg == "dim"] or [ast.Constant(-1)]
        for what, template in CALL_TEMPLATES.get(name, ()):
            yield f"{name}() {what}", filled(template, X=first, DIM=dims[0])
    for at, keyword in enumerate(node.keywords):
        call = copy.deepcopy(node)
        del call.keywords[at]
        yield f"{name}() without {keyword.arg}", call
    method = isinstance(node.func, ast.Attribute) and not is_module(node.func.value)
    for at in range(0 if method else 1, len(node.args)):
        call = copy.deepcopy(node)
        del call.args[at]
        yield f"{name}() without argument {at}", call
    if name == "range":
        for what, template in (("without the last", "list(X)[:-1]"), ("without the first", "list(X)[1:]"), ("reversed", "reversed(X)")):
            yield f"range {what}", filled(template, X=node)
        for n in LENGTHS:
            yield f"range, only {n}", filled(f"list(X)[:{n}]", X=node)
    if name in ("enumerate", "zip"):
        for n in (1, 2, 4, 8, 16, 32, 64, 128, 256):
            yield f"{name}, only {n}", filled(f"list(X)[:{n}]", X=node)
        yield f"{name} without the last", filled("list(X)[:-1]", X=node)
    if name == "sort":
        call = copy.deepcopy(node)
        call.keywords.append(ast.keyword("stable", ast.Constant(True)))
        yield "stable sort", call
    if name == "repeat_interleave" and first is not None and method and node.args and node.keywords:
        yield "repeat() for repeat_interleave()", filled(
            "torch.cat([X] * int(N), dim=D)", X=first, N=node.args[0], D=node.keywords[0].value)


def boolean_changes(node):
    for at in range(len(node.values)):
        rest = node.values[:at] + node.values[at + 1 :]
        yield f"without part {at} of {type(node.op).__name__}", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def choice_changes(node):
    yield "always the first", node.body
    yield "always the second", node.orelse


def slice_changes(node):
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            other = copy.copy(node)
            setattr(other, part, None)
            yield f"slice without {part}", other


FORMS = {
    ast.Constant: lambda node, _: constant_changes(node),
    ast.BinOp: lambda node, _: binary_changes(node),
    ast.Compare: lambda node, _: compare_changes(node),
    ast.Call: call_changes,
    ast.BoolOp: lambda node, _: boolean_changes(node),
    ast.IfExp: lambda node, _: choice_changes(node),
    ast.UnaryOp: lambda node, _: [(f"without {type(node.op).__name__}", node.operand)],
    ast.Slice: lambda node, _: slice_changes(node),
}


# ---- what happens to a statement ------------------------------------------------------------------------------------


def statement_changes(node, loops):
    """Yields (operator, statements that replace the node)."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        yield f"without the assignment to {name}", []
        if loops:
            kept = ast.parse(f'{name} = {name} if "{name}" in locals() else (lambda: 0)()').body[0]
            kept.value.orelse = node.value
            yield f"{name} is carried over", [kept]
    elif isinstance(node, (ast.Assign, ast.Expr)) and not isinstance(getattr(node, "value", None), ast.Constant):
        yield "without the statement", []
    elif isinstance(node, ast.AugAssign):
        yield "= for an augmented assignment", [ast.Assign([node.target], node.value, lineno=node.lineno)]
        yield "without the statement", []
    elif isinstance(node, ast.If):
        yield "always", node.body
        yield "never", node.orelse
        if any(isinstance(inner, ast.Continue) for inner in node.body):
            other = copy.deepcopy(node)
            other.body = [ast.Break() if isinstance(s, ast.Continue) else s for s in other.body]
            yield "break for continue", [other]


# ---- mutants of a reference -----------------------------------------------------------------------------------------


def is_expression(node, parents):
    """Returns whether the node's value can be recorded and replaced."""
    if not isinstance(node, ast.expr) or isinstance(node, (ast.Slice, ast.Starred, ast.Tuple, ast.List, ast.JoinedStr)):
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or is_module(node):
        return False
    parent = parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    return not (isinstance(parent, ast.FunctionDef))


def functions_of(tree):
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def nodes_of(tree):
    """Returns [(number, node)] and {node: parent}, for the nodes in the bodies of functions and the values of the
    module's constants. The number of a node is its place in ast.walk(tree), so a deep copy of the tree has the same
    numbers."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    wanted = set()
    for function in functions_of(tree):
        for statement in function.body:
            wanted.update(ast.walk(statement))
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            wanted.update(ast.walk(statement.value))
    return [(number, node) for number, node in enumerate(ast.walk(tree)) if node in wanted], parents


def profile(source, cases, torch):
    """Runs the original on the inputs of `cases` and returns {number of the node: Seen}."""
    tree = ast.parse(source)
    nodes, parents = nodes_of(tree)
    numbers = {node: number for number, node in nodes if is_expression(node, parents)}
    found = collections.defaultdict(Seen)

    class Wrap(ast.NodeTransformer):
        def generic_visit(self, node):
            number = numbers.get(node)
            super().generic_visit(node)
            if number is None:
                return node
            return ast.Call(ast.Name("_see", ast.Load()), [ast.Constant(number), node], [])

    def see(number, value):
        found[number].add(value, torch)
        return value

    space = {"_see": see}
    exec(compile(ast.fix_missing_locations(Wrap().visit(tree)), "reference", "exec"), space)
    for inputs in cases:
        space["run"](**copies(inputs, torch))
    return found


def copies(inputs, torch):
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}


def with_helpers(text):
    needed = "".join(HELPERS[name] for name in HELPERS if name + "(" in text)
    lines = text.split("\n")
    at = max(n for n, line in enumerate(lines) if line.startswith(("import ", "from "))) + 1
    if needed and "import torch\n" not in text:
        needed = "\nimport torch\n" + needed
    return "\n".join(lines[:at]) + ("\n" + needed if needed else "") + "\n".join(["", *lines[at:], ""])


def replaced(source, number, change):
    """Returns the reference's text with `change` instead of node `number`, or None if the new text is not valid Python.
    `change` is a node, or a list of statements."""
    tree = ast.parse(source)
    target = next(node for n, node in enumerate(ast.walk(tree)) if n == number)
    for parent in list(ast.walk(tree)):
        for field, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, field, copy.deepcopy(change))
            elif isinstance(value, list) and target in value:
                at = value.index(target)
                value[at : at + 1] = copy.deepcopy(change) if isinstance(change, list) else [copy.deepcopy(change)]
                if not value:
                    value.append(ast.Pass())
    try:
        text = with_helpers(ast.unparse(ast.fix_missing_locations(tree)))
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError, AttributeError, TypeError):
        return None
    return text


def normal(text):
    return ast.unparse(ast.parse(text)).strip()


def in_loop(node, parents):
    while node in parents:
        node = parents[node]
        if isinstance(node, (ast.For, ast.While)):
            return True
    return False


def is_new_value(node):
    """Returns whether the node is neither a variable nor a number. A variable needs no mutants of its own, because the
    expression that was assigned to it has mutants. The function constant_changes makes the mutants of numbers."""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return not isinstance(number, (ast.Name, ast.Constant))


def mutants_of(source, arguments, found, values):
    """Returns [(operator, number of the node, node, change)] for a reference."""
    tree = ast.parse(source)
    nodes, parents = nodes_of(tree)
    seen = {node: found[number] for number, node in nodes if number in found}
    out, uses = [], {}
    for number, node in nodes:
        if isinstance(node, ast.Name) and node.id in arguments and number in found:
            uses.setdefault(node.id, (number, node))
        if isinstance(node, ast.stmt):
            out += [(operator, number, node, change) for operator, change in statement_changes(node, in_loop(node, parents))]
            continue
        for kind, changes in FORMS.items():
            if isinstance(node, kind):
                out += [(operator, number, node, change) for operator, change in changes(node, seen)]
        if values and number in found and is_new_value(node):
            out += [(operator, number, node, filled(template, X=node)) for operator, template in value_changes(found[number])]
    body = next(n for n in functions_of(tree) if n.name == "run").body[0]
    start = next(number for number, node in nodes if node is body)
    for name, (number, node) in uses.items() if values else ():
        for operator, template in value_changes(found[number]):
            assigned = ast.Assign([ast.Name(name, ast.Store())], filled(template, X=ast.Name(name, ast.Load())))
            out.append((f"input {operator}", start, node, [assigned, body]))
    return out


# ---- the smallest cases, in this process ----------------------------------------------------------------------------


class Slow(Exception):
    pass


def raise_slow(*_):
    raise Slow


def assert_near(given, expected, rule, torch):
    given, expected = given.float(), expected.float()
    good = (given - expected).abs() <= rule[0] + rule[1] * expected.abs()
    good |= (given == expected) | (given.isnan() & expected.isnan())
    assert good.float().mean() >= rule[2] if rule[2] < 1 else good.all()


class Trial:
    """The smallest cases of a definition: inputs, ground truth and bounds of `reftest verify`."""

    def __init__(self, conftest, test, cpu):
        self.conftest, self.test, self.sets = conftest, test, []
        small = [case for case in test.SIZES if case.label == "small"][:2]
        for case in small:
            for each in (case, case.second_set()):
                inputs = conftest.make_inputs(test, each, cpu)
                truth = conftest.builtin_truth(test, each, inputs)[0]
                rules = [None if conftest.is_judged(test, i) else conftest.rule_of(test, each, inputs, i)
                         for i in range(len(truth))]
                self.sets.append((each, inputs, truth, rules))

    def is_wrong(self, text, torch):
        """Returns whether the mutant fails in the smallest cases."""
        conftest, space = self.conftest, {}
        signal.signal(signal.SIGALRM, raise_slow)
        signal.alarm(20)
        try:
            exec(compile(text, "mutant", "exec"), space)
            for case, inputs, truth, rules in self.sets:
                torch.manual_seed(0)
                outputs = conftest.as_outputs(conftest.definition_of(self.test), space["run"](**copies(inputs, torch)), "run")
                for index, (given, expected, rule) in enumerate(zip(outputs, truth, rules)):
                    if given.shape != expected.shape or given.dtype != expected.dtype:
                        return True
                    if rule is None:
                        conftest.judge(self.test, case, inputs, outputs, index, "")
                    else:
                        assert_near(given, expected, rule, torch)
        except Slow:
            return False
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return True
        finally:
            signal.alarm(0)
        return False


def test_classes(family):
    sys.path.insert(0, os.path.join(planted.PROJECT, "tests", "references"))
    conftest = importlib.import_module("conftest")
    module = importlib.import_module("test_" + family)
    return conftest, [value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "NAME")]


def order_of(mutant):
    """Returns a hash of the mutant as its sort key. The order is the same in each run, but looks random: mutants of
    neighbouring expressions are not neighbours in it."""
    operator, number, node, _, definition = mutant
    return hashlib.sha256(f"{operator} {number} {ast.unparse(node)} {definition['name']}".encode()).hexdigest()


def even(rows, key, most):
    """Returns at most `most` rows, with about equally many for each key."""
    lanes = collections.defaultdict(list)
    for row in sorted(rows, key=order_of):
        lanes[key(row)].append(row)
    out, lanes = [], list(lanes.values())
    while lanes and len(out) < most:
        lanes = [lane for lane in lanes if lane]
        for lane in lanes:
            if len(out) < most:
                out.append(lane.pop())
    return out


def sweep_family(family, options, torch, index):
    conftest, classes = test_classes(family)
    done, texts, rows, left, counts, trials = set(), set(), [], [], collections.Counter(), {}
    started = time.monotonic()
    for test in classes:
        with open(planted.find_definition(test.NAME)) as file:
            definition = json.load(file)
        key = definition["reference"], str([(s["dtype"], s["shape"] is None) for s in definition["inputs"].values()])
        if key in done:
            continue
        done.add(key)
        texts.add(normal(definition["reference"]))
        trials[test.NAME] = Trial(conftest, test, torch.device("cpu"))
        if trials[test.NAME].is_wrong(definition["reference"], torch):
            sys.exit(f"sweep: the original {test.NAME} does not pass")
        found = profile(definition["reference"], [inputs for _, inputs, _, _ in trials[test.NAME].sets], torch)
        mutants = mutants_of(definition["reference"], set(definition["inputs"]), found, not options.forms)
        rows += [(*mutant, definition) for mutant in mutants]
    counts["mutants"] = len(rows)
    for operator, number, node, change, definition in even(rows, lambda row: row[0], len(rows)):
        if len(left) >= options.most or time.monotonic() > started + options.seconds:
            break
        text = replaced(definition["reference"], number, change)
        if text is None or normal(text) in texts:
            counts["same text"] += 1
            continue
        texts.add(normal(text))
        counts["tried"] += 1
        if not options.untried and trials[definition["name"]].is_wrong(text, torch):
            counts["wrong"] += 1
            continue
        name = f"{definition['name']}__sweep{len(left)}"
        planted.write_definition(options.root, {**definition, "name": name, "reference": text})
        left.append({"name": name, "family": family, "definition": definition["name"], "operator": operator,
                     "line": node.lineno, "expression": ast.unparse(node)[:60]})
    counts["left"] = len(left)
    index += left
    print(family, dict(counts), flush=True)


def print_survivors(index, found):
    with open(index) as file:
        rows = {row["name"]: row for row in json.load(file)}
    with open(found) as file:
        definitions = [d for d in json.load(file)["definitions"] if d["name"] in rows]
    statuses = collections.Counter()
    for definition in definitions:
        row = rows[definition["name"]]
        statuses[row["family"], "caught" if planted.is_caught(definition) else definition["status"]] += 1
        if not planted.is_caught(definition):
            margin = max([float(o.get("margin") or 0) for c in definition["cases"] for o in c.get("outputs") or []] + [0])
            print(f"{definition['name']} | line {row['line']} `{row['expression']}` | {row['operator']} | {definition['status']}, margin {margin:.3g}")
    for (family, status), count in sorted(statuses.items()):
        print(f"# {family}: {count} {status}")


def main():
    if sys.argv[1:2] == ["--survivors"]:
        return print_survivors(*sys.argv[2:4])
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("root")
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--most", type=int, default=125, help="write at most so many mutants of a family")
    parser.add_argument("--seconds", type=float, default=600, help="try mutants of a family for so long")
    parser.add_argument("--untried", action="store_true", help="also write mutants that the smallest cases find wrong")
    parser.add_argument("--forms", action="store_true", help="change only the form of the code, no values")
    options = parser.parse_args()
    os.environ["REFTEST_KERNELS"] = os.path.abspath(options.build)
    import torch

    torch.set_num_threads(1)
    folders = sorted(glob.glob(os.path.join(planted.PROJECT, "definitions", "*")))
    os.makedirs(options.root, exist_ok=True)
    index = []
    for family in options.family or [os.path.basename(folder) for folder in folders]:
        sweep_family(family, options, torch, index)
    with open(os.path.join(options.root, "index.json"), "w") as file:
        json.dump(index, file, indent=1)


if __name__ == "__main__":
    main()
