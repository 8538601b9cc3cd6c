# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: ce1df6338c78c9a0b784fe5a62794928
"""conftest - the code that all generated test files in this directory share. It runs
the tests of references.

Each definition of the dataset has a class in a test file here. A test calls the definition's reference on valid inputs
(see run_and_leave) and compares the outputs with ground truths. The code in reftest_libraries/ computes ground truths
with PyTorch and, if they are installed, FlashInfer, SGLang and flash-linear-attention. If reftest is installed, its own
kernels compute a ground truth too: CUDA kernels on a GPU, C code on the CPU. The kernel libraries are searched for in
`$REFTEST_KERNELS`, in the directory of the program `reftest`, and in
/usr/local/lib/reftest. If no ground truth can be computed, the test is skipped, with
the reason.

If reftest is installed, it generates the inputs that `reftest verify` uses, which expose subtle mistakes. Without
reftest, the inputs are random noise. Before every call of a reference, seed_everything seeds the generators of torch,
CUDA, Python and NumPy. python/runner.py of reftest has a copy of this function, which must seed the same generators.

- `pytest tests/references` tests small and medium sizes, and the workloads.
- `pytest tests/references -m "slow or not slow"` also tests the large sizes.
- `pytest tests/references --device cpu` does not use the GPU.
- `pytest tests/references --tolerance 1e-4` replaces the bounds of all outputs.
"""

import ast
import builtins
import collections
import contextlib
import ctypes
import functools
import importlib
import inspect
import json
import keyword
import linecache
import math
import operator
import os
import random
import re
import shutil
import struct
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch

# Torch multiplies matrices on a CPU with Intel's MKL. Without this variable, the bits of a product may differ between
# calls. MKL reads the variable at its first call.
os.environ.setdefault("MKL_CBWR", "AUTO")
ROOT = Path(__file__).resolve().parents[2]
WORST = 5  # how many elements a failure message lists
# Makes pytest report the line of the test, and not a line of this file, if an assertion in this file fails.
__tracebackhide__ = operator.methodcaller("errisinstance", AssertionError)
CPU_ELEMENTS = 1 << 26  # tensor elements; larger workloads run only on a GPU
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e4m3": torch.float8_e4m3fn,  # the name of float8_e4m3fn in earlier versions of flashinfer-bench
    "float8_e5m2": torch.float8_e5m2,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
    **{
        name: getattr(torch, name)
        for name in ("uint32", "float8_e8m0fnu")
        if hasattr(torch, name)
    },
}
LIBRARIES = Path(__file__).resolve().parent / "reftest_libraries"
# Pytest must not import the files in reftest_libraries/, because they have the names of
# libraries.
collect_ignore = [LIBRARIES.name]

# For an input to which the operation may write: the values that it has after the call.
# These are the values of the output `output` or, if `output` is None, values that the
# reference does not return. If `may_keep` is true, the input may also keep its old values.
Left = collections.namedtuple("Left", "output may_keep")

# The attribute LEAVES of a test class has an entry for each input that the operation
# may write to: WRITTEN, KEPT_OR_WRITTEN, written("y") or "y". With the entry
# written("y"), the input must get the values of the output "y"; with the entry "y", it
# may also keep its old values.
WRITTEN, KEPT_OR_WRITTEN = Left(None, False), Left(None, True)


def written(output):
    """Returns an entry of LEAVES for an input that must contain the values of the output
    named `output` after the call."""
    return Left(output, False)


class Unavailable(pytest.skip.Exception):
    """Raised with a reason if a ground truth cannot be computed or inputs cannot be generated. An uncaught Unavailable
    skips the test."""


def __getattr__(name):
    """Explains the error if a test file uses a name that this version of conftest.py lacks."""
    raise AttributeError(
        f"this conftest.py has no '{name}': another version of reftest wrote the test file. "
        "Run `reftest generate`. If you have edited the test file, first move your tests to another file, "
        "then run `reftest generate --force`"
    )


# ---- pytest ---------------------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default=None,
        help="cuda, cuda:N or cpu (default: cuda if available)",
    )
    parser.addoption(
        "--tolerance",
        action="append",
        default=[],
        metavar="[DTYPE=]ATOL[,RTOL[,HIT]]",
        help="tolerance of every output, or of the outputs of one dtype, as in `reftest verify`; can be repeated",
    )


# The values of pytest's option --tolerance: {dtype: (atol, rtol, hit ratio)}. The key None stands for every dtype. The
# hit ratio is None if it is not given.
ASKED_TOLERANCES = {}


def read_tolerance(word):
    """Parses the argument of --tolerance into a dtype and numbers."""
    dtype, equals, numbers = word.rpartition("=")
    try:
        atol, *more = (float(number) for number in numbers.split(","))
        rtol, hit = (*more, *(None, None)[len(more) :])
        rtol = atol if rtol is None else rtol
        if not (0 <= atol < math.inf and 0 <= rtol < math.inf):
            raise ValueError
        if hit is not None and not 0 < hit <= 1:
            raise ValueError
    except ValueError:
        raise pytest.UsageError(
            f"invalid tolerance '{word}' (--tolerance takes "
            "[DTYPE=]ATOL[,RTOL[,HIT_RATIO]], as in 1e-4 or bfloat16=8e-3,1e-2)"
        ) from None
    return (dtype if equals else None), (atol, rtol, hit)


def asked_rule(test, dtype, rule):
    """Returns the tolerance rule `rule` of an output, with its numbers replaced by
    those of pytest's option --tolerance. Without this option, the numbers are replaced
    by those in the tuple TOLERANCES of the test file, if it has one (from `reftest
    generate --tolerance`)."""
    texts = getattr(sys.modules.get(test.__module__), "TOLERANCES", ())
    for asked in ASKED_TOLERANCES, dict(map(read_tolerance, texts)):
        found = asked.get(dtype, asked.get(None))
        if found is not None:
            return found[0], found[1], rule[2] if found[2] is None else found[2]
    return rule


def pytest_configure(config):
    asked = config.getoption("--device", default=None) or ""
    if asked.startswith("cuda") and not torch.cuda.is_available():
        pytest.exit(
            f"--device {asked}: torch {torch.__version__} finds no CUDA GPU here",
            returncode=3,
        )
    for word in config.getoption("--tolerance", default=[]):
        dtype, numbers = read_tolerance(word)
        ASKED_TOLERANCES[dtype] = numbers
    config.addinivalue_line(
        "markers", 'slow: large sizes; run them with -m "slow or not slow"'
    )


def pytest_collection_modifyitems(config, items):
    if "slow" in (config.getoption("markexpr", default="") or ""):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(
                pytest.mark.skip(reason='large: run with -m "slow or not slow"')
            )


@pytest.fixture(scope="session")
def device(request):
    asked = request.config.getoption("--device", default=None)
    return torch.device(asked or ("cuda" if torch.cuda.is_available() else "cpu"))


def main(path):
    """Runs the tests of one file (on a GPU also the large sizes) and prints their summary. Command-line arguments are
    passed to pytest."""
    words = ["-m", "slow or not slow"] if torch.cuda.is_available() else []
    return pytest.main([str(path), "-q", "-rfEs", *words, *sys.argv[1:]])


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


# ---- calls of references --------------------------------------------------------------------------------------------


def compile_reference(test):
    """Compiles a test's reference and returns its entry point. Tracebacks show the source lines of the reference."""
    source, name = test.REFERENCE, test.NAME
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = types.ModuleType(name)
    module.__builtins__ = builtins
    types.FunctionType(compile(source, filename, "exec"), module.__dict__)()
    if test.ENTRY_POINT != "run" and hasattr(module, "run"):
        pytest.fail("the reference defines the function run() dynamically")
    run, definition = getattr(module, test.ENTRY_POINT), definition_of(test)
    plain = test.ENTRY_POINT == "run" and not definition["left_out"]
    if plain and all(map(is_argument, definition["inputs"])):
        return run
    return fitted(run, fitting_of(definition))


def run_reference(test, inputs):
    """Runs the reference on copies of the inputs and returns the outputs in the order of the definition."""
    return run_and_leave(test, inputs)[0]


def run_and_leave(test, inputs, seed=0, run=None):
    """Calls the reference on copies of the inputs. Returns the outputs, and {name: value after the call} for the inputs
    that the operation may write to. Asserts that all other inputs and torch's settings are unchanged, and that the
    outputs are on the same device as the inputs. Gradients are enabled, as in `reftest verify`. If `run` is None,
    compiles the reference anew. Otherwise calls `run`, which may keep state from earlier calls."""
    return call_reference(test, inputs, seed, run)[:2]


# The results of a call of a reference. `left` is {name: value after the call} for the inputs that the operation may
# write to. `memory` has, for each output, the address of its memory, or None if the
# output uses the memory of an input.
Called = collections.namedtuple("Called", "outputs left memory")


def call_reference(test, inputs, seed=0, run=None):
    theirs = copies(inputs)
    with reference_may_run(test):
        run = run or compile_reference(test)
        seed_everything(seed)
        result = run(**theirs)
    outputs = checked_outputs(test, inputs, outputs_or_inputs(test, result, theirs))
    leaves = leaves_of(test)
    for name, value in theirs.items():
        if leaves is None:
            find_change(test, name, value, inputs[name])
        elif name not in leaves:
            check_is_kept(test, name, value, inputs[name])
    given = {memory_of(value) for value in theirs.values()}
    memory = [memory_of(output) for output in outputs]
    return Called(
        outputs,
        {name: theirs[name] for name in leaves or ()},
        [None if address in given else address for address in memory],
    )


def outputs_or_inputs(test, result, inputs):
    """Returns the outputs. If the reference returns None, and each output has the name of an input, these inputs are
    the outputs."""
    names = list(definition_of(test)["outputs"])
    tensors = [inputs.get(name) for name in names]
    if result is None and all(isinstance(x, torch.Tensor) for x in tensors):
        return dict(zip(names, tensors))
    return result


def compiled(test):
    """Compiles the test's reference anew, and returns its function, which keeps its
    state between calls."""
    with reference_may_run(test):
        return compile_reference(test)


def class_of(test):
    return test if isinstance(test, type) else type(test)


@functools.cache
def run_of_class(test_class):
    """Returns the function `run` of a class's reference. As in `reftest verify`, all
    cases of the class call the same function. If the reference keeps state, a test can
    therefore detect that a case depends on an earlier case."""
    return compiled(test_class)


@contextlib.contextmanager
def reference_may_run(test):
    with torch.enable_grad(), settings_are_kept(test.NAME), files_are_found(test):
        yield


def memory_of(value):
    """Returns the address of a tensor's memory, or None if the value has no memory."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return value.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None


@contextlib.contextmanager
def files_are_found(test):
    """If the definition names files that its reference reads, makes the dataset's folder the working directory: the
    paths of these files are relative to this folder."""
    before = os.getcwd()
    if definition_of(test).get("reads"):
        os.chdir(ROOT)
    try:
        yield
    finally:
        os.chdir(before)


def checked_outputs(test, inputs, result):
    """Returns the outputs as tensors that are detached from autograd. Asserts that the outputs are on the device of the
    inputs."""
    if type(result) is list:
        find(f"{test.NAME} returns a list; expected a tuple, a dict or one tensor")
    outputs = as_outputs(definition_of(test), result, test.NAME)
    devices = {x.device for x in inputs.values() if isinstance(x, torch.Tensor)}
    for place, (name, spec) in enumerate(definition_of(test)["outputs"].items()):
        output = outputs[place] = as_tensor(spec, outputs[place])
        if not isinstance(output, torch.Tensor):
            continue
        assert not devices or output.device in devices, (
            f"{test.NAME} returns output '{name}' on {output.device}; its inputs are on {devices.pop()}"
        )
        if output.requires_grad:
            find(f"{test.NAME} returns output '{name}' with requires_grad set")
            outputs[place] = output.detach()
    return outputs


def as_tensor(spec, value):
    """Converts a scalar output that is a Python number to a tensor of the declared dtype, as `reftest verify` does."""
    if spec["shape"] is not None or type(value) not in (bool, int, float):
        return value
    dtype = dtype_of(spec)
    kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
    return torch.tensor(value, dtype=dtype if type(value) is kind else None)


def find_change(test, name, value, before):
    """Reports that an operation without an op family changed an input. The change is a finding and not a failure,
    because some operations update a buffer in place."""
    if not same_bits(value, before):
        find(f"{test.NAME} changes its input '{name}', {first_change(value, before)}")


def check_is_kept(test, name, value, before):
    assert same_bits(value, before), (
        f"{test.NAME} changes its input '{name}', {first_change(value, before)}"
    )
    if isinstance(value, torch.Tensor) and value._version > 0:  # a fresh copy has 0
        find(f"{test.NAME} writes to its input '{name}' and restores it")


class Finding(UserWarning):
    """A finding: a warning about a reference whose results are correct, but whose
    behaviour may surprise a caller."""


def find(sentence):
    warnings.warn(sentence, Finding, stacklevel=2)


# The settings of torch that a reference must not change. Each setting has a function that reads it and a function that
# sets it. SETTINGS in python/runner.py of reftest must have the same rows.
SETTINGS = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "default device": (
        torch.get_default_device,
        lambda device: torch.set_default_device(
            None if device.type == "cpu" else device
        ),
    ),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic mode": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
}


@contextlib.contextmanager
def settings_are_kept(who):
    """Asserts that the code in the with block changes none of SETTINGS. Restores changed settings of torch, because
    other tests depend on these settings."""
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    changed = []
    try:
        yield
    finally:
        for name, (read, write) in SETTINGS.items():
            if read() != before[name]:
                changed.append(f"{name}, from {before[name]} to {read()}")
                write(before[name])
    assert not changed, f"{who} changes torch's {'; '.join(changed)}"


def seed_everything(seed):
    """Seeds the generators of torch, CUDA, Python and NumPy, as python/runner.py of reftest does."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


def leaves_of(test):
    """Returns {input: Left} for the inputs that the operation may write to, or None if
    these inputs are unknown. In these Left objects, `output` is the index of an output
    and not its name."""
    if test.LEAVES is None:
        return None
    definition = definition_of(test)
    names = list(definition["outputs"])
    leaves = {
        name: Left(entry, True) if isinstance(entry, str) else entry
        for name, entry in test.LEAVES.items()
    }
    return {
        name: left
        if left.output is None
        else left._replace(output=names.index(left.output))
        for name, left in leaves.items()
        if left.output is None
        or is_alike(definition["outputs"][left.output], definition["inputs"][name])
    }


def is_alike(one, other):
    return (one["dtype"], one["shape"]) == (other["dtype"], other["shape"])


def same_bits(a, b):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return repr(a) == repr(b)
    alike = a.shape == b.shape and a.dtype == b.dtype
    return alike and torch.equal(bits(a), bits(b))


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def first_change(now, before):
    was, found = ((x.dtype, tuple(x.shape)) for x in (before, now))
    if was != found:
        return f"from {was} to {found}"
    differ = (bits(now) != bits(before)).view(-1, now.element_size()).any(1)
    flat = int(differ.nonzero()[0])
    was, found = (x.contiguous().flatten()[flat].item() for x in (before, now))
    return f"first at {list(unravel(flat, now.shape))}: {was}, then {found}"


def as_outputs(definition, result, who):
    names = list(definition["outputs"])
    if isinstance(result, dict):
        assert sorted(map(str, result)) == sorted(names), (
            f"{who} returns {sorted(map(str, result))}, but the definition has the outputs {names}"
        )
        result = [result[name] for name in names]
    elif not isinstance(result, (tuple, list)):
        result = [result]
    assert len(result) == len(names), (
        f"{who} returns {len(result)} outputs, but the definition has {len(names)}: {names}"
    )
    return list(result)


def copies(inputs):
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }


# ---- cases ----------------------------------------------------------------------------------------------------------


class Case:
    """The values of the axes and, for a case from a workload, the workload's inputs."""

    def __init__(
        self, label, axes, inputs=None, problem=None, second=False, kind=None, **repeat
    ):
        self.label = label
        self.axes = axes
        self.inputs = inputs or {}
        self.omitted = repeat.get("omitted", ())  # the optional inputs that are None
        # {Python scalar: the number that is passed and stands for "use the default"}
        self.numbers = repeat.get("numbers", {})
        self.second = second  # if True, the inputs have the second set of values
        self.problem = problem  # why the case is invalid, or None; the test of an invalid case fails with this message
        self.kind = kind  # "edge" or "probe" if reftest's kernels generate the inputs

    def __repr__(self):
        """Returns the case's id in `reftest verify`."""
        axes = ",".join(f"{name}={value}" for name, value in self.axes.items())
        without = [f":without={name}" for name in self.omitted]
        given = [f":{name}={number:g}" for name, number in self.numbers.items()]
        return "".join([f"{self.label}:{axes}", *without, *given])

    @property
    def repeats(self):
        """Does this case repeat the last small size, either without an optional input,
        or with a number that means "use the default" for a Python scalar?"""
        return bool(self.omitted or self.numbers)

    def second_set(self):
        """Returns the same case with the second set of input values."""
        return Case(
            self.label,
            self.axes,
            self.inputs,
            self.problem,
            True,
            self.kind,
            omitted=self.omitted,
            numbers=self.numbers,
        )


def size(label, /, **axes):
    return Case(label, axes)


def edge(label, /, **axes):
    """Returns an edge case of `reftest verify --edge`."""
    return Case(label, axes, kind="edge")


def probe(label, /, **axes):
    """Returns a case whose outputs reveal constants that the reference uses, but the
    definition does not give."""
    return Case(label, axes, kind="probe")


def constants(**values):
    """Returns a read-only mapping from names to values, for use in a test class."""
    return types.MappingProxyType(values)


def rules(*outputs):
    """Returns the tolerance rules (atol, rtol, hit ratio) that `reftest verify` uses
    for the outputs. Each argument contains the rules of one output: a single rule, or
    one rule for each size in SIZES. An argument is None if no tolerance rule fits the
    output; then reftest's kernels judge the output."""
    return tuple(rows and tuple(rows) for rows in outputs)


def workloads(op_type, name):
    """Returns (name, case) for each line of the workload file, except for lines whose blob file is missing."""
    path = ROOT / "workloads" / op_type / f"{name}.jsonl"
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            uuid, case = workload_of(line, load_definition(op_type, name))
        except (
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as why:
            uuid, case = None, Case("workload", {}, problem=f"{path}:{number}: {why!r}")
        if case is not None:
            found.append((uuid or f"line {number}", case))
    return found


def workload_of(line, definition):
    """Returns the name and the case of a line in a workload file. The case is None if a blob file is missing."""
    line = json.loads(line)
    workload = line.get("workload", line)
    given = workload["inputs"].items()
    omitted = tuple(name for name, value in given if value is None)
    inputs = {
        name: value
        for name, value in given
        if value is not None and value["type"] != "random"
    }
    blobs = [v["path"] for v in inputs.values() if v["type"] == "safetensors"]
    if not all(is_blob(ROOT / blob) for blob in blobs):
        return None, None
    fixed = computed_axes(definition, {})
    found = computed_axes(definition, workload["axes"])
    axes = {name: found[name] for name in found if name not in fixed}
    case = Case("workload", axes, inputs, omitted=omitted)
    return workload.get("uuid"), case


def is_blob(path):
    """Does the blob file exist, with its contents and not only a Git LFS pointer?"""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return not file.read(20).startswith(b"version https://git-")


def cases(op_type, name, sizes):
    """Returns the pytest parameters for all cases: the sizes (large sizes are marked slow) and the workloads."""
    found = [
        pytest.param(
            case,
            id=repr(case),
            marks=[pytest.mark.slow] if case.label == "large" else [],
        )
        for case in sizes
    ]
    return found + [
        pytest.param(case, id=f"workload:{uuid}")
        for uuid, case in workloads(op_type, name)
    ]


def default_sizes(test):
    """Returns the sizes of a class, and variants of its last small size. For each
    optional input in OMITTED, a variant leaves out this input. For each Python scalar in
    DEFAULT_NUMBERS, a variant passes the number that means "use the default"."""
    small = [case for case in test.SIZES if case.label == "small"][-1:]
    repeats = [
        Case(case.label, case.axes, omitted=(name,))
        for case in small
        for name in test.OMITTED
    ] + [
        Case(case.label, case.axes, numbers={name: number})
        for case in small
        for name, number in test.DEFAULT_NUMBERS.items()
    ]
    return [*test.SIZES, *repeats]


def some_cases(sizes):
    """Returns the pytest parameters for two cases: the last small and the last medium size."""
    last = {case.label: case for case in sizes if case.label != "large"}
    return [pytest.param(case, id=repr(case)) for case in last.values()]


def all_edges(sizes, edges):
    """Returns the pytest parameters for edge cases: those of the op family and, if there is a single variable axis, the
    lengths 0 and 1 of this axis."""
    found = [*edges]
    if sizes and len(sizes[0].axes) == 1:
        found += [
            Case("edge", {axis: value}) for axis in sizes[0].axes for value in (0, 1)
        ]
    if not found:
        skip = pytest.mark.skip(
            reason="it is unknown which axes of this definition may be 0"
        )
        return [pytest.param(None, id="none", marks=skip)]
    return [pytest.param(case, id=repr(case)) for case in found]


# Maps the name of an element type in a safetensors file to its name in torch.
SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U32": "uint32",
    "U8": "uint8",
    "BOOL": "bool",
}


def read_safetensors(path, key):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[key]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        data = bytearray(file.read(end - begin))
    flat = (
        torch.frombuffer(data, dtype=torch.uint8)
        if data
        else torch.empty(0, dtype=torch.uint8)
    )
    shape = entry["shape"]
    if entry["dtype"] == "F4":  # in torch, one element holds two 4-bit elements
        shape = [*shape[:-1], shape[-1] // 2]
    dtype = getattr(torch, SAFETENSORS_DTYPES[entry["dtype"]])
    return flat.view(dtype).reshape(shape)


def elements_of(definition, axes):
    axes = resolve_axes(definition, axes)
    specs = list(definition["inputs"].values()) + list(definition["outputs"].values())
    return sum(
        math.prod(shape_of(spec, axes)) for spec in specs if spec["shape"] is not None
    )


def check_room(definition, axes, device, label):
    """Skips a case that needs more memory than this machine has, with a message that says how much it needs. The sizes
    of a case are never reduced."""
    elements = elements_of(definition, axes)
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 16 * elements > host:
        pytest.skip(
            f"{elements} elements need about {16 * elements >> 20} MiB of memory, but the machine has {host >> 20} MiB"
        )
    if (
        device.type == "cpu"
        and label in ("large", "workload")
        and elements > CPU_ELEMENTS
    ):
        pytest.skip(f"{elements} elements exceed the limit for a CPU")
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if 24 * elements > free:
            pytest.skip(
                f"{elements} elements need about {24 * elements >> 20} MiB, but only {free >> 20} MiB are free on the GPU"
            )


def make_inputs(test, case, device):
    """Returns the inputs of a case: those that its workload gives, and generated values
    for the others. The generated values may depend on the workload's Python scalars,
    such as the number that marks padding."""
    assert case.problem is None, case.problem
    definition = definition_of(test)
    if any(given["type"] == "custom" for given in case.inputs.values()) or (
        test.FAMILY is None and not case.inputs and own_code_makes_inputs(definition)
    ):
        pytest.skip(
            "the definition's own code makes the inputs, and only `reftest verify` runs this code"
        )
    check_room(definition, case.axes, device, case.label)
    try:
        inputs = generated_inputs(test, case, device)
    except Unavailable as why:
        pytest.skip(f"inputs: {why}")
    for name, given in case.inputs.items():
        if given["type"] == "safetensors":
            inputs[name] = read_safetensors(
                ROOT / given["path"], given["tensor_key"]
            ).to(device)
        elif isinstance(inputs.get(name), torch.Tensor):
            inputs[name] = torch.full_like(inputs[name], given["value"])
        else:
            inputs[name] = given["value"]
    return inputs


def own_code_makes_inputs(definition):
    return bool(definition.get("init") or definition.get("custom_inputs_entrypoint"))


def generated_inputs(test, case, device):
    """Generates the inputs of a case. The inputs of a size depend only on the axes and scalars, so the class's
    generate_random_inputs generates them. The inputs of other cases also depend on the kind of the case or on its
    workload."""
    scalars = scalars_of(test, case)
    if case.kind is not None:
        return kernels_inputs(test, case, device, scalars)
    if case.inputs or case.repeats:
        with contextlib.suppress(Unavailable):
            return kernels_inputs(test, case, device, scalars)
    axes = {**case.axes, **scalars}
    seed = int(case.second)
    inputs = test.generate_random_inputs(axes, device=device, seed=seed)
    return inputs | dict.fromkeys(case.omitted)


def scalars_of(test, case):
    """Returns the Python scalars of a case. For a case that is one of the sizes,
    returns the values that `reftest verify` uses for this size; for any other case,
    returns the values in the workload."""
    specs, place = definition_of(test)["inputs"], place_of(test, case)
    if place is not None and not case.second:
        return {
            name: rows[place if len(rows) > 1 else 0]
            for name, rows in test.SCALARS.items()
        }
    given = {
        name: given["value"]
        for name, given in case.inputs.items()
        if given["type"] == "scalar" and specs[name]["shape"] is None
    }
    return given | case.numbers


def place_of(test, case):
    """Returns the index of the size whose axes have the same values as this case, or None if there is none."""
    if case.kind is not None or case.inputs or case.repeats:
        return None
    axes = [size.axes for size in test.SIZES]
    return axes.index(case.axes) if case.axes in axes else None


def make_second_inputs(test, case, device):
    """Returns a pair: the same case with the second set of input values, and the inputs
    with these values."""
    second = case.second_set()
    return second, make_inputs(test, second, device)


def random_inputs(test, axes, device, seed=0):
    """Generates inputs for these axis values: the inputs of `reftest verify` if reftest's kernels are installed, else
    plain inputs. Seeds 0 and 1 give the two sets of input values of a case. `axes` may also contain values of Python
    scalars."""
    definition = definition_of(test)
    scalars = {name: x for name, x in axes.items() if name in definition["inputs"]}
    axes = {name: x for name, x in axes.items() if name in definition["axes"]}
    case = Case("random", axes, second=seed % 2 == 1)
    try:
        return kernels_inputs(test, case, device, scalars, seed // 2)
    except Unavailable as why:
        return Plain(test, case, scalars, seed, why).inputs(device)


# ---- plain inputs ---------------------------------------------------------------------------------------------------


def noise(shape, generator):
    """Returns uniform values in [-1, 1), which are the same on every device."""
    return torch.rand(shape, generator=generator, dtype=torch.float32) * 2 - 1


def split(total, parts, most=None):
    """Divides `total` into parts that are as equal as possible, larger parts first. `most` contains the maximum of each
    part, in descending order. If `total` exceeds the sum of the maximums, the first
    part gets the rest."""
    lengths = [0] * parts
    for i in reversed(range(parts)):
        fits = most and i > 0
        lengths[i] = min(total // (i + 1), most[i]) if fits else total // (i + 1)
        total -= lengths[i]
    return lengths


def offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


class Plain:
    """Generates valid inputs: random noise for floats, and regular sequences for integers. Which integers are valid
    follows from the role of the input (ROLES of the test class). Raises Unavailable for an input whose role does not
    say which values are valid. These inputs expose fewer mistakes than the inputs that reftest generates."""

    def __init__(self, test, case, scalars, seed, why):
        definition = definition_of(test)
        self.test, self.scalars, self.why = test, scalars, why
        self.place = place_of(test, case)
        self.generator = torch.Generator(device="cpu").manual_seed(seed)
        self.specs = definition["inputs"]
        self.sizes = resolve_axes(definition, case.axes)
        self.names = test.ROLES
        self.roles = {name: role for role, name in self.names.items()}

    def inputs(self, device):
        found = {}
        for name, spec in self.specs.items():
            if spec["shape"] is None:
                found[name] = self.scalar(name)
            else:
                found[name] = self.tensor(name).to(dtype_of(spec)).to(device)
        return found

    def unavailable(self, name):
        if self.test.FAMILY is None:
            return Unavailable(f"the valid values of '{name}' are unknown")
        return Unavailable(
            f"only reftest can generate valid values of '{name}'; install reftest ({self.why})"
        )

    def scalar(self, name):
        rows = self.test.SCALARS.get(name, [])
        if name in self.scalars:
            return self.scalars[name]
        if rows:
            return rows[(self.place or 0) % len(rows)]
        if "float" not in self.specs[name]["dtype"]:
            raise self.unavailable(name)
        return 1.0

    def tensor(self, name):
        role, shape = self.roles.get(name), shape_of(self.specs[name], self.sizes)
        if "float" in self.specs[name]["dtype"]:
            return self.floats(role, noise(shape, self.generator))
        make = getattr(self, f"integers_{role}", None)
        values = None if make is None else make(shape)
        if values is None:
            raise self.unavailable(name)
        return values.expand(shape)

    def floats(self, role, values):
        if role == "probs":
            return values.softmax(-1)
        if role in ("top_p", "min_p"):
            return values.abs()
        if role == "temperature":
            return values.abs() + 0.5
        if "new_state" in self.test.OUTPUT_ROLES:
            # The logarithm of a decay is at most 0.
            if role in ("gate", "gamma"):
                return -values.abs()
            # Keys with a norm above 1 would amplify the state at each token.
            if role == "k":
                return torch.nn.functional.normalize(values, dim=-1)
        return values

    def length(self, role, axis=0):
        return shape_of(self.specs[self.names[role]], self.sizes)[axis]

    def numbers(self, count, limit):
        """Returns `count` numbers: 0, 1, …, limit - 1, and then from 0 again."""
        return torch.arange(count) % max(limit, 1)

    def page_size(self):
        if "cache" not in self.names:
            return self.length("k", 1)
        modes = self.test.MODES
        return self.length("cache", 1 + ("combined" in modes) + ("hnd" in modes))

    def keys(self):
        """Returns the number of keys of each sequence."""
        count = self.length("kv_indptr") - 1
        if "kv_indices" not in self.names:
            return split(self.length("k"), count)
        pages = split(self.length("kv_indices"), count)
        return [self.page_size() * number for number in pages]

    def integers_qo_indptr(self, shape):
        keys = self.keys()
        return offsets(split(self.length("q"), len(keys), keys))

    def integers_kv_indptr(self, shape):
        pages = "kv_indices" if "kv_indices" in self.names else "k"
        return offsets(split(self.length(pages), shape[0] - 1))

    def integers_cu_seqlens(self, shape):
        return offsets(split(self.length("q", -3), shape[0] - 1))

    def integers_indptr(self, shape):
        return offsets(split(self.length("indices"), shape[0] - 1))

    def integers_kv_indices(self, shape):
        return self.numbers(shape[0], self.length("k"))

    def integers_indices(self, shape):
        """Returns page numbers of a cache, or slots of a state pool. No number occurs
        twice."""
        pool = self.length("cache" if "cache" in self.names else "state")
        return torch.arange(shape[0]) if shape[0] <= pool else None

    def integers_last_page_len(self, shape):
        indptr = (
            self.integers_indptr if "indices" in self.names else self.integers_kv_indptr
        )
        pages = indptr((shape[0] + 1,)).diff()
        return torch.where(pages > 0, self.page_size(), 0)

    def appended(self):
        """Returns the sequence and the position of each appended token. Tokens are appended at the end of their
        sequence."""
        sequences = self.length("indptr") - 1
        pages = split(self.length("indices"), sequences)
        room = [self.page_size() * number for number in pages]
        tokens = self.length("append")
        if tokens > sum(room):
            return None
        new = torch.tensor(split(tokens, sequences, room), dtype=torch.int64)
        owner = torch.arange(sequences).repeat_interleave(new)
        rank = torch.arange(tokens) - (new.cumsum(0) - new)[owner]
        return owner, torch.tensor(room, dtype=torch.int64)[owner] - new[owner] + rank

    def integers_batch_indices(self, shape):
        found = self.appended()
        return found and found[0]

    def integers_positions(self, shape):
        if "append" in self.names:
            found = self.appended()
            return found and found[1]
        rows = self.length("cos_sin_cache") if "cos_sin_cache" in self.names else 4096
        return self.numbers(shape[0], rows)

    def integers_sparse(self, shape):
        """Returns the indices of the keys of each query, padded with -1. Each query uses the first keys."""
        keys = self.length("k") * self.length("k", 1)
        chosen = torch.arange(shape[1])
        return torch.where(chosen < keys, chosen, -1)

    def integers_top_k(self, shape):
        return 1 + self.numbers(shape[0], self.length("probs", 1))

    def integers_ids(self, shape):
        """Returns the numbers of the selected experts. Returns None if the definition has no
        input with the weights of these experts: each integer then contains the number of
        an expert and its weight."""
        if "id_weights" not in self.names:
            return None
        first = self.numbers(shape[0], self.length("weights1"))[:, None]
        return (first + torch.arange(shape[1])) % self.length("weights1")

    def integers_mask(self, shape):
        return torch.arange(math.prod(shape)).view(shape) % 2


# ---- reftest's own kernels ------------------------------------------------------------------------------------------


class Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Judged(ctypes.Structure):
    _fields_ = (
        ("text", ctypes.c_char_p),
        *((name, ctypes.POINTER(Place)) for name in ("inputs", "outputs", "truth")),
    )


class Kernels:
    """The libraries libreftest_kernels.so and libreftest_kernels_cuda.so. In each call,
    `text` is the case as JSON text (see kernels_case)."""

    OK, NONE, REFUSED = 0, 1, 2

    def __init__(self, folder):
        self.folder = folder
        self.host = ctypes.CDLL(str(folder / "libreftest_kernels.so"))
        if not hasattr(self.host, "reftest_rounding"):
            raise Unavailable(
                f"the kernels in {folder} are from a reftest that is too old for this file"
            )

    @functools.cached_property
    def cuda(self):
        try:
            return ctypes.CDLL(str(self.folder / "libreftest_kernels_cuda.so"))
        except OSError as why:
            raise Unavailable(f"reftest has no CUDA kernels here ({why})") from why

    def call(self, function, *words):
        why = ctypes.create_string_buffer(2048)
        code = function(*words, why, ctypes.c_size_t(len(why)))
        text = why.value.decode("utf-8", "replace")
        if code < 0:
            raise RuntimeError(f"reftest's kernels: {text}")
        return code, text

    def need(self, function, *words):
        code, text = self.call(function, *words)
        if code != self.OK:
            raise Unavailable(text)
        return text

    def rule(self, text, output):
        rule = (ctypes.c_double * 3)()
        self.need(self.host.reftest_bounds, text, output, rule)
        return tuple(rule)

    def fill(self, text, index, tensor):
        """Fills a tensor in host memory with the input values of the case."""
        self.need(self.host.reftest_fill, text, index, place(tensor))

    def scalar(self, text, index):
        value = ctypes.c_double()
        self.need(self.host.reftest_scalar, text, index, ctypes.byref(value))
        return value.value

    def probe(self, text, inputs, outputs):
        """Returns the constants with which a reference computed these outputs. Asserts that such constants exist. All
        tensors are in host memory."""
        code, found = self.call(
            self.host.reftest_probe, text, places(inputs), places(outputs)
        )
        assert code != self.REFUSED, (
            f"no value of a constant explains the reference's outputs: {found}"
        )
        return json.loads(found) if code == self.OK else {}

    def truth(self, text, inputs, outputs, left, device):
        given = [places(group) for group in (inputs, outputs, left)]
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            index = (
                device.index
                if device.index is not None
                else torch.cuda.current_device()
            )
            self.need(self.cuda.reftest_truth_left_cuda, text, index, *given)
        else:
            self.need(self.host.reftest_truth_left, text, *given)

    def judge(self, text, index, inputs, outputs, truth):
        """Judges an output. Returns None if a tolerance rule must be used instead, ""
        if the output is correct, and otherwise a message that says why the output is
        wrong."""
        host = [on_host(group) for group in (inputs, outputs, truth)]
        code, why = self.call(
            self.host.reftest_judge, text, index, *(places(group) for group in host)
        )
        return None if code == self.NONE else why if code == self.REFUSED else ""

    def rounding(self, text, index, outputs, truth):
        """Examines an output that is within its tolerance. Returns "" or a message that says that the output is
        truncated instead of rounded."""
        host = [on_host(group) for group in (outputs, truth)]
        code, why = self.call(
            self.host.reftest_rounding, text, index, *(places(group) for group in host)
        )
        return why if code == self.REFUSED else ""

    def judge_both(self, sets, index):
        """Judges an output on both sets of input values together. Each set is (text, inputs, outputs, truth), with
        tensors in host memory. Returns a message that says why the output is wrong, or ""."""
        judged = (Judged * 2)(
            *(
                Judged(text, *(places(group) for group in groups))
                for text, *groups in sets
            )
        )
        code, why = self.call(self.host.reftest_judge_both, judged, index)
        return why if code == self.REFUSED else ""


def on_host(tensors):
    return [tensor.cpu() if tensor is not None else None for tensor in tensors]


def place(tensor):
    if tensor is None:
        return Place(None, 0)
    return Place(tensor.data_ptr() or None, tensor.numel() * tensor.element_size())


def places(tensors):
    return (Place * max(len(tensors), 1))(*(place(tensor) for tensor in tensors))


@functools.lru_cache(maxsize=1)
def _find_kernels():
    program = shutil.which("reftest")
    beside = (
        [
            Path(program).resolve().parent,
            Path(program).resolve().parent.parent / "lib/reftest",
        ]
        if program
        else []
    )
    named = os.environ.get("REFTEST_KERNELS")
    for folder in [Path(named)] if named else [*beside, Path("/usr/local/lib/reftest")]:
        if (folder / "libreftest_kernels.so").is_file():
            try:
                return Kernels(folder)
            except OSError as why:
                return f"reftest's kernels failed to load ({why})"
    where = (
        f"$REFTEST_KERNELS is {named}, which contains no kernels"
        if named
        else "reftest is not installed"
    )
    return f"reftest's kernels are not available ({where})"


def kernels():
    found = _find_kernels()
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def kernels_case(test, case, inputs, seed=0):
    """Writes a case as JSON text for reftest's kernels. The text includes the Python
    scalars, and the constants of the reference for which the definition gives no
    value."""
    definition = definition_of(test)
    known = {} if case.kind == "probe" else constants_of(test)
    scalars = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
    constants = {
        name: float(known[name])
        for name, value in test.CONSTANTS.items()
        if value is None and known.get(name) is not None
    }
    known_axes = {
        name: {"type": "var"}
        if length_of(axis) is None
        else {"type": "const", "value": length_of(axis)}
        for name, axis in definition["axes"].items()
    }
    text = {
        "definition": {key: definition[key] for key in definition if key != "reference"}
        | {"axes": known_axes},
        "axes": dict(case.axes),
        "scalars": scalars,
        "constants": constants,
        "seed": seed,
        "contents": int(case.second),
        "given": list(case.inputs),
        "absent": list(case.omitted),
        "probe": case.kind == "probe",
    }
    if case.kind == "edge":
        text["edge"] = case.label
    return json.dumps(text).encode("utf-8")


def kernels_inputs(test, case, device, scalars, seed=0):
    """Generates the inputs as `reftest verify` does, but with the Python scalars in `scalars`."""
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    text = kernels_case(test, case, scalars, seed)
    inputs = {}
    for index, (name, spec) in enumerate(definition["inputs"].items()):
        if name in case.omitted:
            inputs[name] = None
        elif spec["shape"] is not None:
            host = torch.empty(shape_of(spec, sizes), dtype=dtype_of(spec))
            kernels().fill(text, index, host)
            inputs[name] = host.to(device)
        elif name in scalars:
            inputs[name] = scalars[name]
        else:
            kind = {"b": bool, "i": int, "u": int}.get(spec["dtype"][0], float)
            kind = float if spec["dtype"] == "bfloat16" else kind
            inputs[name] = kind(kernels().scalar(text, index))
    return inputs


# ---- hidden constants -----------------------------------------------------------------------------------------------


@functools.cache
def _constants(test):
    found = dict(test.CONSTANTS)
    if None in found.values() and test.PROBE is not None:
        with contextlib.suppress(Unavailable):
            found |= recovered_constants(test)
    return found


def recovered_constants(test):
    """Finds the constants that the definition does not give. Calls the reference on inputs for which the outputs reveal
    these constants."""
    host = torch.device("cpu")
    inputs = kernels_inputs(test, test.PROBE, host, {})
    outputs = contiguous(run_reference(test, inputs))
    return kernels().probe(
        kernels_case(test, test.PROBE, inputs),
        in_order(definition_of(test), inputs),
        outputs,
    )


def constants_of(test):
    """Returns the constants of the reference, from the definition or else from the
    reference's outputs. If neither gives a constant, its value is None."""
    return _constants(class_of(test))


# ---- ground truth ---------------------------------------------------------------------------------------------------


# The results of a ground truth. `coarse` is None if the ground truth computes as exactly
# as the definition says; otherwise it contains atol and rtol for each output.
Truth = collections.namedtuple("Truth", "name outputs coarse")


@functools.cache
def tables():
    """Loads the tables of library calls and returns {name of the ground truth: table} in order of preference."""
    path = LIBRARIES / "common.py"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `reftest generate` restores it")
    # Loads common.py under the name by which the tables import it. This code does the
    # same as the function `load` in common.py, which loads the tables.
    common = sys.modules["reftest_providers"] = types.ModuleType("reftest_providers")
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    types.FunctionType(code, common.__dict__)()
    broken = {}
    found = common.load_tables(str(LIBRARIES), broken)
    for problem in broken.values():
        raise problem
    return found


def ground_truths(family):
    """Returns the pytest parameters for the ground truths of an op family: their names in order of preference."""
    found = [table.name for table in tables().values() if family in table.rows]
    return [*found, "builtin"]


def need(module):
    """Imports a module of a library. Raises Unavailable with the reason if that fails."""
    try:
        return importlib.import_module(module)
    except Exception as why:  # the import of compiled code may raise any exception
        raise Unavailable(
            f"cannot import {module} ({type(why).__name__}: {why})"
        ) from why


@functools.cache
def lacking_version(name):
    return sys.modules["reftest_providers"].version_of(tables()[name])[1]


def device_class(device):
    if device.type != "cuda":
        return device.type
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def request_of(test, case, inputs):
    """Returns the request for a library. The request is a message {"provide"}
    (python/provider.py of reftest) with only the fields that
    reftest_libraries/common.py reads."""
    definition, sizes = (
        definition_of(test),
        resolve_axes(definition_of(test), case.axes),
    )
    return {
        "family": test.FAMILY,
        "name": test.NAME,
        "class": device_class(device_of(inputs)),
        "axes": sizes,
        "constants": {
            name: value
            for name, value in constants_of(test).items()
            if value is not None
        },
        "roles": dict(test.ROLES),
        "output_roles": dict(test.OUTPUT_ROLES),
        "modes": list(test.MODES),
        "outputs": [
            {
                "name": name,
                "dtype": spec["dtype"],
                "shape": list(shape_of(spec, sizes)),
                "scalar": spec["shape"] is None,
            }
            for name, spec in definition["outputs"].items()
        ],
    }


def with_defaults(test, case, inputs):
    """Returns the inputs for a library. If a Python scalar has the number that stands for "use the default", replaces
    it by the default, because libraries do not know this number."""
    names = [
        name for name, number in test.DEFAULT_NUMBERS.items() if inputs[name] == number
    ]
    if not names:
        return inputs
    text, order = kernels_case(test, case, inputs), list(definition_of(test)["inputs"])
    kind = {name: type(inputs[name]) for name in names}
    return inputs | {
        name: kind[name](kernels().scalar(text, order.index(name))) for name in names
    }


def library_truth(test, case, inputs, table):
    """Computes a ground truth with a library. Raises Unavailable if the library cannot compute it."""
    common, row = sys.modules["reftest_providers"], table.rows.get(test.FAMILY)
    inputs = with_defaults(test, case, inputs)
    if row is None:
        raise Unavailable("it does not support this operation")
    device = device_of(inputs)
    why = common.lacking(row, device_class(device)) or lacking_version(table.name)
    if why is not None:
        raise Unavailable(why)
    for wanted in table.needs:
        if wanted.module is not None:
            need(wanted.module)
    getattr(table.module, "on_import", lambda: None)()
    call = common.Call(
        torch, request_of(test, case, inputs), copies(inputs), str(device)
    )
    seed_everything(0)
    with torch.no_grad():
        results = row.call(call)
    outputs = as_outputs(definition_of(test), results, table.name)
    coarse = common.coarse_of(row, call, outputs)
    return Truth(
        table.name, outputs, coarse and [(x["atol"], x["rtol"]) for x in coarse]
    )


def ground_truth(test, case, inputs, name):
    """Computes the ground truth `name`. Raises Unavailable if it cannot be computed."""
    if name == "builtin":
        return Truth(name, builtin_truth(test, case, inputs)[0], None)
    if name not in tables():
        raise Unavailable("it does not support this operation")
    try:
        return library_truth(test, case, inputs, tables()[name])
    except Exception as why:
        if refusal(why) is None:
            raise
        raise Unavailable(refusal(why)) from why


def refusal(why):
    """Returns the exception's message if the library lacks a function, a module, a compiler, or a kernel for this
    device or shape. Returns None if the library failed for another reason."""
    module = isinstance(why, AttributeError) and str(why).startswith("module '")
    refused = sys.modules["reftest_providers"].Unavailable, NotImplementedError
    if isinstance(why, (*refused, ImportError)) or module:
        return str(why)
    words = (
        "not supported|unsupported|not implemented|no kernel image"
        "|compute capability|static assertion|could not find nvcc"
    )
    library = isinstance(why, (RuntimeError, ValueError))
    found = library and re.search(f".*({words}).*", str(why), re.IGNORECASE)
    return found[0].strip()[:300] if found else None


def device_of(inputs):
    return next(
        (value.device for value in inputs.values() if isinstance(value, torch.Tensor)),
        torch.device("cpu"),
    )


def in_order(definition, inputs):
    """Returns the input tensors in the definition's order, with None for Python scalars and for inputs that are left
    out."""
    values = [inputs[name] for name in definition["inputs"]]
    return [
        value.contiguous() if isinstance(value, torch.Tensor) else None
        for value in values
    ]


def builtin_truth(test, case, inputs, left=()):
    """Computes the ground truth "builtin" with reftest's kernels. Returns the outputs, and the values that the inputs
    in `left` must have after the call. `left` lists the inputs whose new values are not also
    outputs."""
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    device = device_of(inputs)
    outputs = [
        torch.empty(shape_of(spec, sizes), dtype=dtype_of(spec), device=device)
        for spec in definition["outputs"].values()
    ]
    own = {name: torch.empty_like(inputs[name].contiguous()) for name in left}
    kernels().truth(
        kernels_case(test, case, inputs),
        in_order(definition, inputs),
        outputs,
        [own.get(name) for name in definition["inputs"]],
        device,
    )
    return outputs, own


def rule_of(test, case, inputs, index):
    """Returns atol, rtol and hit ratio of `reftest verify` for an output. reftest's kernels compute them for these
    inputs. Without reftest's kernels, returns the tolerance rule of the test class for
    the size that the case has. If the case is not one of the sizes, returns the widest
    rule of all sizes."""
    try:
        return kernels().rule(kernels_case(test, case, inputs), index)
    except Unavailable:
        rules = test.RULES
        rows = rules[index] if rules else ()
    if not rows:
        raise Unavailable(f"the bounds of {test.NAME} are unknown")
    place = place_of(test, case)
    return rows[place] if len(rows) > 1 and place is not None else widest(*rows)


def widest(*rules):
    return (
        max(rule[0] for rule in rules),
        max(rule[1] for rule in rules),
        min(rule[2] for rule in rules),
    )


def tolerance(test, case, inputs, index, truth):
    """Returns atol, rtol and hit ratio of an output, as in `reftest verify`. If the
    ground truth computes less exactly than the definition says, atol and rtol are at
    least those in truth.coarse."""
    spec = list(definition_of(test)["outputs"].values())[index]
    rule = asked_rule(test, spec["dtype"], rule_of(test, case, inputs, index))
    if truth.coarse is None:
        return rule
    atol, rtol = truth.coarse[index]
    return max(rule[0], atol), max(rule[1], rtol), rule[2]


def first_truth(test, case, inputs):
    """Returns the first ground truth that can be computed. If no ground truth can be computed, skips the test and gives
    all reasons."""
    reasons = []
    for name in ground_truths(test.FAMILY):
        try:
            return ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    pytest.skip("no ground truth: " + "; ".join(reasons))


# ---- comparing ------------------------------------------------------------------------------------------------------


def compute_error_metrics(actual, expected, atol=0.0, rtol=0.0):
    """Measures the difference of two tensors. An element is within the bounds if |actual - expected| <= atol + rtol
    |expected|, or if both values are the same infinity. NaN is never within the bounds."""
    exact = not (actual.is_floating_point() or expected.is_floating_point())
    same = actual == expected if exact else None
    a, e = actual.detach().double().flatten(), expected.detach().double().flatten()
    difference = (a - e).abs()
    hit = (
        same.flatten()
        if exact
        else (difference <= atol + rtol * e.abs()) & e.isfinite() & a.isfinite()
    )
    hit = hit | ((a == e) & a.isinf())
    finite = a.isfinite() & e.isfinite()
    d, r = difference[finite], e[finite].abs().clamp(min=1e-8)
    norms = a[finite].norm() * e[finite].norm()
    bound = (atol + rtol * e.abs()).clamp(min=1e-300)
    badness = (difference / bound).nan_to_num(nan=torch.inf, posinf=torch.inf)
    badness = torch.where(hit, badness.clamp(max=1.0), badness + 2)
    worst = (
        badness.topk(min(WORST, badness.numel())).indices.tolist()
        if badness.numel()
        else []
    )
    total = max(a.numel(), 1)
    return {
        "elements": a.numel(),
        "max_abs": d.max().item() if d.numel() else 0.0,
        "mean_abs": d.mean().item() if d.numel() else 0.0,
        "max_rel": (d / r).max().item() if d.numel() else 0.0,
        "mean_rel": (d / r).mean().item() if d.numel() else 0.0,
        "cosine": (a[finite] @ e[finite] / norms).item() if norms > 0 else 1.0,
        "mse": d.square().mean().item() if d.numel() else 0.0,
        "hits": int(hit.sum().item()),
        "hit_ratio": hit.sum().item() / total if a.numel() else 1.0,
        "nan": (int(a.isnan().sum()), int(e.isnan().sum())),
        "inf": (int(a.isinf().sum()), int(e.isinf().sum())),
        "worst": [
            (unravel(flat, actual.shape), a[flat].item(), e[flat].item())
            for flat in worst
        ],
    }


def unravel(flat, shape):
    index = []
    for length in reversed(shape):
        index.append(flat % length)
        flat //= length
    return tuple(reversed(index))


def describe(metrics, atol, rtol, hit_ratio):
    m = types.SimpleNamespace(**metrics)
    text = (
        f"{m.hits} of {m.elements} elements are within {atol:.3g} + {rtol:.3g} |expected|\n"
        f"(hit ratio {m.hit_ratio:.4f}, needed {hit_ratio:g})\n"
        f"max abs {m.max_abs:.4g}, mean abs {m.mean_abs:.4g}, max rel {m.max_rel:.4g},\n"
        f"mean rel {m.mean_rel:.4g}, cosine {m.cosine:.6f}, mse {m.mse:.4g}\n"
        f"NaN: {m.nan[0]} actual, {m.nan[1]} expected;"
        f" infinite: {m.inf[0]} actual, {m.inf[1]} expected"
    )
    for index, actual, expected in m.worst:
        text += (
            f"\n  {list(index)}  actual {actual:.9g}  expected {expected:.9g}"
            f"  |difference| {abs(actual - expected):.4g}"
        )
    return text


def check_hit_ratio(actual, expected, atol, rtol, hit_ratio, what="output"):
    """Asserts that at least the fraction `hit_ratio` of the elements is within the bounds. The failure message shows
    all metrics and the five worst elements."""
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    )
    metrics = compute_error_metrics(actual, expected, atol, rtol)
    enough = metrics["hits"] >= hit_ratio * metrics["elements"]
    assert enough, f"{what}:\n{describe(metrics, atol, rtol, hit_ratio)}"


def assert_close(actual, expected, atol, rtol, what="output"):
    check_hit_ratio(actual, expected, atol, rtol, 1.0, what)


def is_judged(test, index):
    """Returns true if reftest's kernels judge this output, because no elementwise
    tolerance rule fits it."""
    rules = test.RULES
    return bool(rules) and rules[index] is None


def judge(test, case, inputs, outputs, index, what):
    """Asserts that reftest's kernels find an output correct. The output may come from the reference or from a
    library."""
    verdict = kernels().judge(
        kernels_case(test, case, inputs),
        index,
        in_order(definition_of(test), inputs),
        contiguous(outputs),
        builtin_truth(test, case, inputs)[0],
    )
    assert not verdict, f"{what}: {verdict}"


def compare(test, case, inputs, outputs, truth):
    """Asserts that the outputs agree with the ground truth `truth`."""
    for index, output in enumerate(definition_of(test)["outputs"]):
        what = f"{test.NAME}, output '{output}' against {truth.name}"
        assert isinstance(outputs[index], torch.Tensor), (
            f"{what}: a {type(outputs[index]).__name__} is not a tensor"
        )
        if is_judged(test, index):
            judge(test, case, inputs, outputs, index, what)
            continue
        rule = tolerance(test, case, inputs, index, truth)
        expected = truth.outputs[index].to(outputs[index].device)
        check_hit_ratio(outputs[index], expected, *rule, what=what)
        short = expected.dtype in (torch.bfloat16, torch.float16)
        if truth.coarse is None and short:
            check_rounding(test, case, inputs, outputs, truth, index, what)


def check_rounding(test, case, inputs, outputs, truth, index, what):
    """Asserts that an output is rounded to its dtype, not truncated. Asserts nothing if reftest's kernels are not
    installed."""
    try:
        wrong = kernels().rounding(
            kernels_case(test, case, inputs),
            index,
            contiguous(outputs),
            [
                x.to(y.dtype)
                for x, y in zip(contiguous(truth.outputs), outputs, strict=True)
            ],
        )
    except Unavailable:
        return
    assert not wrong, f"{what}: {wrong}"


def changed_inputs(test, inputs, left):
    """Returns those inputs to which the operation may write, and whose values the reference changed or should have
    changed."""
    return {
        name: leaves
        for name, leaves in (leaves_of(test) or {}).items()
        if isinstance(inputs[name], torch.Tensor)
        and not (leaves.may_keep and same_bits(left[name], inputs[name]))
    }


def own_truths(test, case, inputs, changed):
    """Computes the expected values of the changed inputs whose new values are not also
    outputs. Raises Unavailable if reftest's kernels are not installed."""
    names = [name for name, leaves in changed.items() if leaves.output is None]
    return builtin_truth(test, case, inputs, names)[1] if names else {}


def compare_left(test, case, inputs, left, truth):
    """Asserts that each input to which the reference wrote, or must write, has the values that the operation
    computes."""
    definition, changed = definition_of(test), changed_inputs(test, inputs, left)
    try:
        own = own_truths(test, case, inputs, changed)
    except Unavailable:
        own = {}  # no values to compare with: test_inputs_are_kept reports why
    for place, given in enumerate(definition["inputs"]):
        if given not in changed:
            continue
        what = (
            f"{test.NAME}: input '{given}' after the call, compared with {truth.name}"
        )
        if same_bits(left[given], inputs[given]):
            what = f"{test.NAME} leaves its input '{given}' unchanged, but must write to it"
        output = changed[given].output
        if output is not None:
            rule = tolerance(test, case, inputs, output, truth)
            expected = truth.outputs[output].to(left[given].device)
            check_hit_ratio(left[given], expected, *rule, what)
        elif given in own:
            text = kernels_case(test, case, inputs)
            rule = kernels().rule(text, len(definition["outputs"]) + place)
            check_hit_ratio(left[given], own[given], *rule, what)


def confirm(test, case, inputs, outputs, left, names):
    """Compares the outputs with the ground truths in `names`, in this order. Stops after
    the first ground truth that computes as exactly as the definition says (Truth.coarse
    is None). Returns two lists: the names of the ground truths that were compared, and
    the reasons why other ground truths could not be computed."""
    answered, reasons = [], []
    for name in names:
        try:
            truth = ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
            continue
        compare(test, case, inputs, outputs, truth)
        compare_left(test, case, inputs, left, truth)
        answered.append(name)
        if truth.coarse is None:
            return answered, reasons
    if answered:
        find(
            f"{test.NAME} {case}: only {' and '.join(answered)} gave a result, and their rounding errors may exceed "
            f"the bounds"
        )
    return answered, reasons


def contiguous(tensors):
    return [tensor.contiguous() for tensor in tensors]


# ---- the tests ------------------------------------------------------------------------------------------------------


def check_definition(test):
    """Asserts that the test file has the same reference and the same lengths of const
    axes as the definition's JSON file."""
    definition = definition_of(test)
    assert test.REFERENCE == definition["reference"], (
        f"the reference of definitions/{test.OP_TYPE}/{test.NAME}.json has changed since this file was generated: "
        "run `reftest generate`"
    )
    for name, axis in definition["axes"].items():
        length = length_of(axis)
        assert length is None or test.AXES[name] == length, (
            f"axis '{name}' is {length} in the JSON file, but not in this test: run `reftest generate`"
        )


def small_run(test, device):
    case = (
        test.SIZES[0]
        if test.SIZES
        else pytest.skip("the op family has no sizes for this definition")
    )
    inputs = make_inputs(test, case, device)
    return case, inputs, *run_and_leave(test, inputs)


def check_shapes(test, case, outputs):
    check_dtypes(test, outputs)
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    for (name, spec), output in zip(
        definition["outputs"].items(), outputs, strict=True
    ):
        if spec["shape"] is not None:
            found = (
                tuple(output.shape)
                if isinstance(output, torch.Tensor)
                else type(output).__name__
            )
            assert found == shape_of(spec, sizes), (
                f"output '{name}' has shape {found}, not {shape_of(spec, sizes)}"
            )


def check_output_shape(test, device):
    case, _, outputs, _ = small_run(test, device)
    check_shapes(test, case, outputs)


def check_output_dtype(test, device):
    _, _, outputs, _ = small_run(test, device)
    check_dtypes(test, outputs)


def check_dtypes(test, outputs):
    definition = definition_of(test)
    for (name, spec), output in zip(
        definition["outputs"].items(), outputs, strict=True
    ):
        if isinstance(output, torch.Tensor):
            assert output.dtype == dtype_of(spec), (
                f"output '{name}' is {output.dtype}, not {spec['dtype']}"
            )
        else:
            assert spec["shape"] is None, (
                f"output '{name}' is a {type(output).__name__}, not a tensor"
            )


def check_replaced(test, inputs, outputs, left):
    """Asserts that the reference writes to all inputs whose new values it also returns,
    or to none of them. Ignores an input whose new values equal its old values."""
    replaced = {
        name: leaves.output
        for name, leaves in (leaves_of(test) or {}).items()
        if leaves.output is not None and isinstance(inputs[name], torch.Tensor)
    }
    written = [name for name in replaced if not same_bits(left[name], inputs[name])]
    kept = [
        name
        for name, output in replaced.items()
        if name not in written and not same_bits(outputs[output], inputs[name])
    ]
    assert not written or not kept, (
        f"the reference wrote to its input '{written[0]}' but left its input '{kept[0]}' unchanged; it must write to "
        f"both, or return new tensors for both"
    )


def check_inputs_are_kept(test, device):
    """Asserts that the reference leaves its inputs unchanged. If the operation may write to an input, the input may
    also have the values that the operation computes."""
    case, inputs, outputs, left = small_run(test, device)
    if leaves_of(test) is None:
        pytest.skip("it is unknown which inputs this operation may write to")
    check_replaced(test, inputs, outputs, left)
    changed = changed_inputs(test, inputs, left)
    if not changed:
        return
    if all(leaves.output is not None for leaves in changed.values()):
        truth = first_truth(test, case, inputs)
    else:
        try:
            truth = ground_truth(test, case, inputs, "builtin")
        except Unavailable as why:
            pytest.skip(f"the expected contents of {list(changed)} are unknown: {why}")
    compare_left(test, case, inputs, left, truth)


def check_numerical_correctness(test, case, device):
    """Tests a case with the rules of `reftest verify`. Calls the reference with a first set of input values, with a
    second set of the same shapes, and with the first set again under other seeds. The outputs for both sets must agree
    with a ground truth, and the third call must give the same bits as the first. Some cases omit calls (runs_of)."""
    runs, sets = runs_of(test, case), []
    if 1 in runs:
        sets.append((case, make_inputs(test, case, device)))
    if 2 in runs:
        sets.append(make_second_inputs(test, case, device))
    calls, kept, run = [], [], run_of_class(class_of(test))
    for seed, (_, given) in enumerate(sets):
        calls.append(call_reference(test, given, seed, run))
        kept.append(copies_of(calls[-1].outputs))
    if len(runs) > len(sets):
        again = sets[0][1]
        calls.append(call_reference(test, again, 0 if test.SAMPLES else 2, run))
        seeds = "" if test.SAMPLES else " with other seeds"
        when = f"between two runs on the same inputs{seeds}"
        check_same(test, (kept[0], calls[0].left), calls[2][:2], when)
    check_memory_is_new(test, calls, kept)
    for place, (each, given) in enumerate(sets):
        check_replaced(test, given, kept[place], calls[place].left)
        check_outputs(test, each, given, kept[place], calls[place].left)
    if len(sets) > 1:
        check_both_sets(test, sets, kept)


def runs_of(test, case):
    """Returns one number for each run of the reference in a case, as in `reftest verify`: 1 if the run uses the first
    set of input values, 2 if it uses the second set."""
    sizes = [(size.label, size.axes) for size in test.SIZES]
    if case.repeats or (case.label, case.axes) not in sizes:
        return 1, 2, 1
    return test.RUNS[sizes.index((case.label, case.axes))]


def copies_of(outputs):
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in outputs]


def check_memory_is_new(test, calls, kept):
    """Asserts that no call reuses the memory of an earlier call's output. An output
    that has the same values for both sets of input values may reuse memory, because no
    earlier values are lost."""
    earlier = set()
    for call in calls:
        for place, name in enumerate(definition_of(test)["outputs"]):
            assert call.memory[place] not in earlier or same_bits(
                kept[0][place], kept[1][place]
            ), f"output '{name}' uses the memory of an output of an earlier call"
        earlier |= {address for address in call.memory if address is not None}


def check_both_sets(test, sets, outputs):
    """For each output that reftest's kernels judge, asserts that its values for both
    sets of input values are correct together. For example, random samples that were
    drawn with different seeds must differ."""
    for index, name in enumerate(definition_of(test)["outputs"]):
        if not is_judged(test, index):
            continue
        judged = [
            (
                kernels_case(test, case, inputs),
                on_host(in_order(definition_of(test), inputs)),
                on_host(contiguous(given)),
                on_host(builtin_truth(test, case, inputs)[0]),
            )
            for (case, inputs), given in zip(sets, outputs, strict=True)
        ]
        wrong = kernels().judge_both(judged, index)
        assert not wrong, f"{test.NAME}, output '{name}': {wrong}"


def check_outputs(test, case, inputs, outputs, left):
    check_shapes(test, case, outputs)
    names = ground_truths(test.FAMILY)
    answered, reasons = confirm(test, case, inputs, outputs, left, names)
    if not answered:
        pytest.skip("no ground truth: " + "; ".join(reasons))


def check_determinism(test, device):
    """Asserts that two calls with equal inputs return equal bits. The seeds of torch, NumPy and Python differ between
    the calls, unless the operation draws random samples."""
    _, inputs, *first = small_run(test, device)
    samples = test.SAMPLES
    second = run_and_leave(test, inputs, seed=0 if samples else 1)
    seeds = "and seeds" if samples else "with other seeds of torch, NumPy and Python"
    check_same(test, first, second, f"between two runs on the same inputs {seeds}")


def check_same(test, one, other, when):
    """Asserts that the outputs of two calls, and the inputs after these calls, have equal bits."""
    (first, first_left), (second, second_left) = one, other
    for name, a, b in zip(definition_of(test)["outputs"], first, second, strict=True):
        assert same_bits(a, b), f"output '{name}' differs {when}"
    for name, a in first_left.items():
        assert same_bits(a, second_left[name]), (
            f"input '{name}' after the call differs {when}"
        )


def check_calls_are_independent(test, device):
    """Asserts that outputs depend only on the inputs of the same call. The reference is called with a first set of
    input values, a second set with the same shapes, and the first set again. The last call must give the same outputs
    as the first."""
    small = [case for case in test.SIZES if case.label == "small"]
    case = (
        small[-1]
        if small
        else pytest.skip("the op family has no small sizes for this definition")
    )
    inputs = make_inputs(test, case, device)
    run = compiled(test)
    first = run_and_leave(test, inputs, run=run)
    kept = copies_of(first[0])
    second_case, second_inputs = make_second_inputs(test, case, device)
    outputs, left = run_and_leave(test, second_inputs, run=run)
    for name, a, b in zip(definition_of(test)["outputs"], first[0], kept, strict=True):
        assert same_bits(a, b), f"the next call overwrites output '{name}'"
    third = run_and_leave(test, inputs, run=run)
    check_same(test, first, third, "after a call with other input values")
    check_outputs(test, second_case, second_inputs, outputs, left)


def check_edge_case(test, case, device):
    """Asserts that an edge case gives outputs of the declared shapes, and that the outputs agree with a ground truth if
    one can be computed. In some edge cases, only a convention says which output is
    correct; there, a different output is a finding and not a failure."""
    inputs = make_inputs(test, case, device)
    if case.kind is None or 0 in case.axes.values():
        check_edge(test, case, inputs)
        return
    try:
        check_edge(test, case, inputs)
    except Exception as why:  # noqa: BLE001
        find(
            f"{test.NAME} departs from the convention of the edge case {case} "
            f"(`reftest verify {test.NAME} --edge` prints the convention): {why}"
        )


def check_edge(test, case, inputs):
    outputs, left = run_and_leave(test, inputs)
    check_shapes(test, case, outputs)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    changed = changed_inputs(test, inputs, left).keys()
    if any(
        value.numel() > 0 for value in [*tensors, *(left[name] for name in changed)]
    ):
        named = case.kind is not None
        names = ["builtin"] if named else ground_truths(test.FAMILY)
        confirm(test, case, inputs, outputs, left, names)


def check_against(test, case, name, device):
    inputs = make_inputs(test, case, device)
    try:
        truth = ground_truth(test, case, inputs, name)
    except Unavailable as why:
        pytest.skip(f"{name}: {why}")
    outputs, left = run_and_leave(test, inputs)
    compare(test, case, inputs, outputs, truth)
    compare_left(test, case, inputs, left, truth)


def check_ground_truths_agree(test, case, device):
    inputs = make_inputs(test, case, device)
    found, reasons = [], []
    for name in ground_truths(test.FAMILY):
        try:
            found.append(ground_truth(test, case, inputs, name))
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    if len(found) < 2:
        pytest.skip("fewer than two ground truths are available: " + "; ".join(reasons))
    *others, last = found
    for truth in others:
        check_truths_agree(test, case, inputs, truth, last)


def check_truths_agree(test, case, inputs, one, other):
    """Asserts that two ground truths agree. If no elementwise tolerance rule fits an output, reftest's kernels must
    find the output of each ground truth correct."""
    for index, output in enumerate(definition_of(test)["outputs"]):
        what = f"{test.NAME}, output '{output}': {one.name} against {other.name}"
        if is_judged(test, index):
            judge(test, case, inputs, one.outputs, index, what)
            continue
        rule = widest(
            tolerance(test, case, inputs, index, one),
            tolerance(test, case, inputs, index, other),
        )
        check_hit_ratio(one.outputs[index], other.outputs[index], *rule, what=what)


# ---- generated classes ----------------------------------------------------------------------------------------------


class DefinitionTests:
    """The base class of all generated test classes. A generated class sets attributes for one definition; the values
    below are the defaults. The report of a failure shows the line of the test method,
    and no other line of this file."""

    ROLES = OUTPUT_ROLES = AXES = CONSTANTS = LEAVES = SCALARS = constants()
    DEFAULT_NUMBERS = constants()
    MODES = SIZES = RUNS = OMITTED = EDGES = ()
    PROBE = None
    ENTRY_POINT = "run"
    RULES = rules()
    SAMPLES = False

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return random_inputs(cls, axes, device, seed)

    def test_definition_is_unchanged(self):
        __tracebackhide__ = False
        check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        __tracebackhide__ = False
        check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        __tracebackhide__ = False
        check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        __tracebackhide__ = False
        check_inputs_are_kept(self, device)

    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        __tracebackhide__ = False
        check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        __tracebackhide__ = False
        check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        __tracebackhide__ = False
        check_calls_are_independent(self, device)

    @torch.no_grad()
    def test_edge_cases(self, case, device):
        __tracebackhide__ = False
        check_edge_case(self, case, device)

    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        __tracebackhide__ = False
        check_against(self, case, name, device)

    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        __tracebackhide__ = False
        check_ground_truths_agree(self, case, device)


# For each test that runs several times: its parameters, in the order that they have in
# the test's ID.
PARAMETERS = {
    "test_numerical_correctness": lambda test: {
        "case": cases(test.OP_TYPE, test.NAME, default_sizes(test))
    },
    "test_edge_cases": lambda test: {"case": all_edges(test.SIZES, test.EDGES)},
    "test_against_ground_truth": lambda test: {
        "name": ground_truths(test.FAMILY),
        "case": some_cases(test.SIZES),
    },
    "test_ground_truths_agree": lambda test: {"case": some_cases(test.SIZES)},
}


def pytest_generate_tests(metafunc):
    inherited = getattr(DefinitionTests, metafunc.function.__name__, None)
    if metafunc.function is not inherited:
        return
    parameters = PARAMETERS.get(metafunc.function.__name__, lambda test: {})
    for name, values in parameters(metafunc.cls).items():
        metafunc.parametrize(name, values)
