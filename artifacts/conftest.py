"""What the reference tests beside this file share.

Each definition of the dataset has a class in a test file here. Its reference is run on inputs that fit the operation,
and what comes out is compared with ground truth: FlashInfer, SGLang, flash-linear-attention or PyTorch where they are
installed, and reftest's own kernels where reftest is (`$REFTEST_KERNELS`, else the folder beside the program, else
/usr/local/lib/reftest): its CUDA kernels on a GPU, its C oracles on the CPU. A test for which there is none is skipped,
and says why.

    pytest tests/references                    small and medium sizes, and the workloads
    pytest tests/references -m "slow or not slow"     the large ones too
    pytest tests/references --device cpu       without the GPU
"""

import builtins
import contextlib
import ctypes
import functools
import importlib
import json
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

# Torch multiplies on a CPU with Intel's MKL, which else need not give the same bits twice; it reads this at its first call.
os.environ.setdefault("MKL_CBWR", "AUTO")
ROOT = Path(__file__).resolve().parents[2]
WORST = 5  # places that a failure names
# To pytest: what is asserted in here is told at the test that asked for it.
__tracebackhide__ = operator.methodcaller("errisinstance", AssertionError)
CPU_ELEMENTS = 1 << 26  # a workload with more is for a GPU
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
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
# atol, rtol and hit ratio that other libraries' rounding costs at least, by the output's dtype
TOLERANCES = {
    torch.float64: (1e-7, 1e-7, 1.0),
    torch.float32: (1e-5, 1e-5, 1.0),
    torch.float16: (1e-3, 1e-3, 1.0),
    torch.bfloat16: (8e-3, 1e-2, 1.0),
    torch.float8_e4m3fn: (1e-1, 2e-1, 0.85),
    torch.float8_e5m2: (1e-1, 2e-1, 0.85),
}


# What a class says of inputs that the operation writes to without returning them; of others it names the output that they
# may be.
WRITTEN, KEPT_OR_WRITTEN = object(), object()


class Unavailable(pytest.skip.Exception):
    """A ground truth, or inputs, that cannot be had here; the message says why. Caught by nobody, it skips the test."""


# ---- pytest ---------------------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default=None,
        help="cuda, cuda:N or cpu (default: cuda where there is one)",
    )


def pytest_configure(config):
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
    """Runs the tests of one file, on a GPU the large sizes too, and prints their summary. Words of the command line go to
    pytest."""
    words = ["-m", "slow or not slow"] if torch.cuda.is_available() else []
    return pytest.main([str(path), "-q", "-rfEs", *words, *sys.argv[1:]])


# ---- definitions, references ----------------------------------------------------------------------------------------


@functools.cache
def _definition_text(op_type, name):
    return (ROOT / "definitions" / op_type / f"{name}.json").read_text(encoding="utf-8")


def load_definition(op_type, name):
    """The definition as its JSON file has it."""
    return json.loads(_definition_text(op_type, name))


def compile_reference(source, name="reference"):
    """The function `run` of a reference. Tracebacks show its lines."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = types.ModuleType(name)
    module.__builtins__ = builtins
    types.FunctionType(compile(source, filename, "exec"), module.__dict__)()
    return module.run


def definition_of(test):
    return load_definition(test.OP_TYPE, test.NAME)


def run_reference(test, inputs):
    """What `run` returns, as a list in the order of the definition's outputs. Its inputs are copies."""
    return run_and_leave(test, inputs)[0]


def run_and_leave(test, inputs, seed=0, run=None):
    """What `run` returns, and what it leaves in those inputs that the operation may write to, by name. That it leaves the
    others, and torch's settings, as they were is asserted, and that its outputs lie where its inputs do. Gradients are
    enabled, as `reftest verify` has them. `run`: one that was compiled before, with all that it remembers."""
    theirs = copies(inputs)
    with torch.enable_grad(), settings_are_kept(test.NAME):
        run = run or compile_reference(test.REFERENCE, test.NAME)
        seed_everything(seed)
        result = run(**theirs)
    outputs = checked_outputs(test, inputs, result)
    leaves = leaves_of(test)
    for name, value in theirs.items():
        if leaves is not None and name not in leaves:
            check_is_kept(test, name, value, inputs[name])
    return outputs, {name: theirs[name] for name in leaves or ()}


def checked_outputs(test, inputs, result):
    """The outputs without their gradients, if they are on the device of the inputs."""
    if isinstance(result, list):
        find(
            f"{test.NAME} returns a list where a tuple, a dict or one tensor is expected"
        )
    outputs = as_outputs(definition_of(test), result, test.NAME)
    devices = {x.device for x in inputs.values() if isinstance(x, torch.Tensor)}
    for place, name in enumerate(definition_of(test)["outputs"]):
        output = outputs[place]
        if not isinstance(output, torch.Tensor):
            continue
        assert not devices or output.device in devices, (
            f"{test.NAME} returns output '{name}' on {output.device}; its inputs are on {devices.pop()}"
        )
        if output.requires_grad:
            find(f"{test.NAME} returns output '{name}' with requires_grad set")
            outputs[place] = output.detach()
    return outputs


def check_is_kept(test, name, value, before):
    assert same_bits(value, before), (
        f"{test.NAME} changes its input '{name}', {first_change(value, before)}"
    )
    if isinstance(value, torch.Tensor) and value._version > 0:  # of a copy that was new
        find(f"{test.NAME} writes to its input '{name}' and puts back what it held")


class Finding(UserWarning):
    """What does not make a reference wrong, and is reported all the same."""


def find(sentence):
    warnings.warn(sentence, Finding, stacklevel=2)


# Settings of the process that a reference must leave as they were: how each is read, and how it is set.
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
    """Asserts it, and takes back what was changed in any case, so that no other test is the worse."""
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    changed = []
    try:
        yield
    finally:
        for name, (read, write) in SETTINGS.items():
            if read() != before[name]:
                changed.append(f"{name}, from {before[name]} to {read()}")
                write(before[name])
    assert not changed, f"{who} leaves torch's {'; '.join(changed)}"


def seed_everything(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def leaves_of(test):
    """Inputs that the operation may write to, and what it then leaves there: WRITTEN, KEPT_OR_WRITTEN, or the index of the
    output that it may be; an output that is not like the input cannot. None: nothing says."""
    if getattr(test, "LEAVES", None) is None:
        return None
    definition = definition_of(test)
    names = list(definition["outputs"])
    return {
        name: names.index(left) if left in names else left
        for name, left in test.LEAVES.items()
        if left not in names
        or is_alike(definition["outputs"][left], definition["inputs"][name])
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
            f"{who} gives {sorted(map(str, result))}, the definition has the outputs {names}"
        )
        result = [result[name] for name in names]
    elif not isinstance(result, (tuple, list)):
        result = [result]
    assert len(result) == len(names), (
        f"{who} gives {len(result)} outputs, the definition has {len(names)}: {names}"
    )
    return list(result)


def copies(inputs):
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }


def resolve_axes(definition, axes):
    """A value for every axis: the const ones of the definition, the var ones as given."""
    return {
        name: axis["value"] if axis["type"] == "const" else axes[name]
        for name, axis in definition["axes"].items()
    }


def shape_of(spec, axes):
    return tuple(axes[axis] for axis in spec["shape"])


def tensor_inputs(definition):
    """Names of the inputs that are tensors, in order."""
    return [
        name for name, spec in definition["inputs"].items() if spec["shape"] is not None
    ]


def dtype_of(spec):
    if spec["dtype"] not in DTYPES:
        raise Unavailable(f"torch has no {spec['dtype']} that can be made here")
    return DTYPES[spec["dtype"]]


# ---- cases ----------------------------------------------------------------------------------------------------------


class Case:
    """Axis values, and for a workload the inputs that it gives."""

    def __init__(self, label, axes, inputs=None, problem=None, second=False):
        self.label = label
        self.axes = axes
        self.inputs = inputs or {}
        self.second = second  # the second contents of its shapes
        self.problem = (
            problem  # why this is no case: its test fails, and costs no other
        )

    def __repr__(self):
        return f"{self.label}:{','.join(f'{name}={value}' for name, value in self.axes.items())}"


def size(label, /, **axes):
    return Case(label, axes)


def constants(**values):
    """What a class knows by name."""
    return types.MappingProxyType(values)


def rules(*outputs):
    """atol, rtol and hit ratio that `reftest verify` holds each output to: one rule, or one for each of SIZES."""
    return tuple(tuple(rows) for rows in outputs)


def workloads(op_type, name):
    """The lines of the workload file that need no missing blob, each with its name."""
    path = ROOT / "workloads" / op_type / f"{name}.jsonl"
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            uuid, case = workload_of(line)
        except (AttributeError, KeyError, TypeError, ValueError) as why:
            uuid, case = None, Case("workload", {}, problem=f"{path}:{number}: {why!r}")
        if case is not None:
            found.append((uuid or f"line {number}", case))
    return found


def workload_of(line):
    """Its name and case; no case if a blob is missing."""
    workload = json.loads(line)["workload"]
    given = workload["inputs"].items()
    inputs = {name: value for name, value in given if value["type"] != "random"}
    blobs = [v["path"] for v in inputs.values() if v["type"] == "safetensors"]
    if not all(is_blob(ROOT / blob) for blob in blobs):
        return None, None
    return workload.get("uuid"), Case("workload", dict(workload["axes"]), inputs)


def is_blob(path):
    """Is it there, and no pointer of Git LFS?"""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return not file.read(20).startswith(b"version https://git-")


def cases(op_type, name, sizes):
    """For parametrize: the sizes, large ones marked slow, and the workloads."""
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


def some_cases(sizes):
    """For parametrize: the last of the small and of the medium sizes."""
    last = {case.label: case for case in sizes if case.label != "large"}
    return [pytest.param(case, id=repr(case)) for case in last.values()]


def edge_cases(op_type, name, sizes, edges=None):
    """For parametrize: nothing at all, and one of everything. A family whose axes hang together says what that is; else
    the only var axis is it."""
    if edges is not None and sizes:
        try:
            definition = load_definition(op_type, name)
            found = [
                Case("edge", axes) for axes in edges(definition, dict(sizes[0].axes))
            ]
        except (OSError, LookupError, TypeError, ValueError) as why:
            # A definition that is not as it was costs no other.
            found = [Case("edge", {}, problem=f"{name}: {why!r}")]
    elif sizes and len(sizes[0].axes) == 1:
        found = [
            Case("edge", {axis: value}) for axis in sizes[0].axes for value in (0, 1)
        ]
    else:
        found = []
    if not found:
        skip = pytest.mark.skip(
            reason="which axes may be empty, nothing says for this definition"
        )
        return [pytest.param(None, id="none", marks=skip)]
    return [pytest.param(case, id=repr(case)) for case in found]


def read_safetensors(path, key):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[key]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        data = bytearray(file.read(end - begin))
    dtypes = {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "F8_E4M3": torch.float8_e4m3fn,
        "F8_E5M2": torch.float8_e5m2,
        "I64": torch.int64,
        "I32": torch.int32,
        "I16": torch.int16,
        "I8": torch.int8,
        "U8": torch.uint8,
        "BOOL": torch.bool,
    }
    flat = (
        torch.frombuffer(data, dtype=torch.uint8)
        if data
        else torch.empty(0, dtype=torch.uint8)
    )
    return flat.view(dtypes[entry["dtype"]]).reshape(entry["shape"])


def elements_of(definition, axes):
    axes = resolve_axes(definition, axes)
    specs = list(definition["inputs"].values()) + list(definition["outputs"].values())
    return sum(
        math.prod(shape_of(spec, axes)) for spec in specs if spec["shape"] is not None
    )


def check_room(definition, axes, device, label):
    """Skips what this machine cannot hold, with the figure; nothing is ever shrunk."""
    elements = elements_of(definition, axes)
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 16 * elements > host:
        pytest.skip(
            f"{elements} elements need about {16 * elements >> 20} MiB to be made, the machine has {host >> 20}"
        )
    if (
        device.type == "cpu"
        and label in ("large", "workload")
        and elements > CPU_ELEMENTS
    ):
        pytest.skip(f"{elements} elements: more than is computed on a CPU")
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if 24 * elements > free:
            pytest.skip(
                f"{elements} elements need about {24 * elements >> 20} MiB; the GPU has {free >> 20} free"
            )


def make_inputs(test, case, device, seed=0):
    """The inputs of a case: the family's, and in their place what a workload gives. Python scalars of a workload stand
    beside the axes, for what the others mean may hang on them (the number that stands for padding)."""
    assert case.problem is None, case.problem
    definition = definition_of(test)
    check_room(definition, case.axes, device, case.label)
    try:
        written = scalars_of(test, case)
        axes = {**case.axes, **written, **given_scalars(definition, case)}
        inputs = test.generate_random_inputs(axes, device=device, seed=seed)
        inputs.update(written)
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


def scalars_of(test, case):
    """The Python scalars that `reftest verify` has at this size."""
    if case not in test.SIZES:
        return {}
    place = test.SIZES.index(case)
    return {
        name: rows[place if len(rows) > 1 else 0]
        for name, rows in getattr(test, "SCALARS", {}).items()
    }


def given_scalars(definition, case):
    return {
        name: given["value"]
        for name, given in case.inputs.items()
        if given["type"] == "scalar" and definition["inputs"][name]["shape"] is None
    }


def make_second_inputs(test, case, device):
    """Other inputs of the same shapes, and their case: those that `reftest verify` has for it where reftest's kernels are
    here, else the family's in torch with another seed."""
    first = make_inputs(test, case, device, seed=1)
    second = Case(case.label, case.axes, second=True)
    try:
        return second, {
            name: kernels_input(test, second, index, name, value)
            for index, (name, value) in enumerate(first.items())
        }
    except Unavailable:
        return case, first


def noise(shape, dtype, device, generator):
    """Uniform on [-1, 1), the same on every device."""
    return (
        (torch.rand(shape, generator=generator, dtype=torch.float32) * 2 - 1)
        .to(dtype)
        .to(device)
    )


def generator_of(seed):
    return torch.Generator(device="cpu").manual_seed(seed)
