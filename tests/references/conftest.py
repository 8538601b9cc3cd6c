# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: bab5ff6d05a7e3b7e9f5f2b06468910b
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


# ---- reftest's own kernels ------------------------------------------------------------------------------------------


class Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Kernels:
    """libreftest_kernels.so, and beside it the CUDA one. Every call takes the case as a JSON text."""

    OK, NONE, REFUSED = 0, 1, 2

    def __init__(self, folder):
        self.folder = folder
        self.host = ctypes.CDLL(str(folder / "libreftest_kernels.so"))
        if not hasattr(self.host, "reftest_bounds"):
            raise Unavailable(
                f"{folder} has kernels of a reftest that is too old for this file"
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
        code, why = self.call(function, *words)
        if code != self.OK:
            raise Unavailable(why)

    def rule(self, text, output):
        rule = (ctypes.c_double * 3)()
        self.need(self.host.reftest_bounds, text, output, rule)
        return tuple(rule)

    def fill(self, text, index, tensor):
        """Into a tensor on the host."""
        self.need(self.host.reftest_fill, text, index, place(tensor))

    def scalar(self, text, index):
        value = ctypes.c_double()
        self.need(self.host.reftest_scalar, text, index, ctypes.byref(value))
        return value.value

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
        """None: the element rule is to decide; "": the output is right; else what is wrong."""
        host = [
            [value.cpu() if value is not None else None for value in group]
            for group in (inputs, outputs, truth)
        ]
        code, why = self.call(
            self.host.reftest_judge, text, index, *(places(group) for group in host)
        )
        return None if code == self.NONE else why if code == self.REFUSED else ""


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
                return f"reftest's kernels cannot be loaded ({why})"
    where = (
        f"$REFTEST_KERNELS is {named}, and has none"
        if named
        else "reftest is not installed"
    )
    return f"reftest's kernels are not here ({where})"


def kernels():
    found = _find_kernels()
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def kernels_case(test, case, inputs):
    """The JSON text that reftest's kernels take. Python scalars, and constants that nothing attests, are told by value."""
    definition, known = definition_of(test), constants_of(test)
    scalars = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
    constants = {
        name: float(known[name])
        for name, value in test.CONSTANTS.items()
        if value is None and known[name] is not None
    }
    text = {
        "definition": {
            key: definition[key] for key in definition if key != "reference"
        },
        "axes": dict(case.axes),
        "scalars": scalars,
        "constants": constants,
        "seed": 0,
        "contents": int(case.second),
    }
    return json.dumps(text).encode("utf-8")


def kernels_input(test, case, index, name, like):
    """An input as `reftest verify` makes it; `like`: another of its shape, or of its type."""
    text = kernels_case(test, case, {})
    if not isinstance(like, torch.Tensor):
        return like if like is None else type(like)(kernels().scalar(text, index))
    host = torch.empty(like.shape, dtype=like.dtype)
    kernels().fill(text, index, host)
    return host.to(like.device)


def generic_inputs(definition, axes, device, seed=0):
    """For an operation that no family of reftest knows: noise, if it takes floats alone."""
    specs = definition["inputs"].items()
    names = [name for name, spec in specs if "float" not in spec["dtype"]]
    if names:
        raise Unavailable(f"what integers '{names[0]}' may hold, nothing says")
    generator, sizes = generator_of(seed), resolve_axes(definition, axes)
    return {
        name: 1.0
        if spec["shape"] is None
        else noise(shape_of(spec, sizes), dtype_of(spec), device, generator)
        for name, spec in specs
    }


# ---- ground truth ---------------------------------------------------------------------------------------------------


def need(module, device=None):
    """A module of another library, or Unavailable with the reason. With a device: one that wants a GPU."""
    if device is not None and device.type != "cuda":
        raise Unavailable(f"{module.partition('.')[0]} needs a CUDA GPU")
    try:
        return importlib.import_module(module)
    except (
        Exception
    ) as why:  # what an import of compiled code raises is anybody's guess
        raise Unavailable(
            f"{module} cannot be imported ({type(why).__name__}: {why})"
        ) from why


def need_capability(device, major, minor=0):
    """The major number of the GPU's compute capability, or Unavailable if it is below."""
    found = torch.cuda.get_device_capability(device)
    if found < (major, minor):
        raise Unavailable(
            f"it needs compute capability {major}.{minor}, this GPU has {found[0]}.{found[1]}"
        )
    return found[0]


@functools.cache
def _constants(test):
    probe = getattr(test, "PROBE", None)
    found = probe(test) if probe else {}
    return {
        name: found.get(name) if value is None else value
        for name, value in test.CONSTANTS.items()
    }


def constants_of(test):
    """What no input says: as attested, else as the family's probe recovers it from the reference's answers, else None."""
    return _constants(test if isinstance(test, type) else type(test))


def need_constant(test, name):
    value = constants_of(test).get(name)
    if value is None:
        raise Unavailable(f"nothing attests the constant '{name}' of {test.NAME}")
    return value


def round_constant(estimate):
    """What was meant by an estimate that is good to 2 %: a round number (1, 2 … 9 times a power of ten), or a dtype's
    epsilon, which torch takes when it is given none; else what was found. An answer that no constant gives is wrong."""
    assert estimate > 0 and math.isfinite(estimate), (
        f"the reference answers its probe as no constant would make it: {estimate}"
    )
    meant = [float(f"{estimate:.0e}")]
    meant += [torch.finfo(dtype).eps for dtype in (torch.float32, torch.bfloat16)]
    near = (x for x in meant if abs(estimate - x) <= 0.02 * x)
    return next(near, estimate)


def attend(q, k, v, scale, causal):
    """One sequence through torch's scaled_dot_product_attention, in float64: q [n, heads, D], k and v [m, heads that
    share them, …]; causal: the last query sees all keys. The output, and its log-sum-exp to base 2 [n, heads]."""
    n, m, shared = len(q), len(k), q.shape[1] // max(k.shape[1], 1)
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)
    seen = torch.ones(n, m, dtype=torch.bool, device=q.device)
    seen = seen.tril(m - n) if causal else seen
    output = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen, scale=scale
    )
    logits = (q @ k.mT * scale).masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(logits, -1) / math.log(2)
    output = output.masked_fill(lse.isneginf()[..., None], 0.0)
    return output.transpose(0, 1), lse.mT


def device_of(inputs):
    return next(
        (value.device for value in inputs.values() if isinstance(value, torch.Tensor)),
        torch.device("cpu"),
    )


def in_order(definition, inputs):
    """Tensors by place, None for Python scalars and what is absent."""
    values = [inputs[name] for name in definition["inputs"]]
    return [
        value.contiguous() if isinstance(value, torch.Tensor) else None
        for value in values
    ]


def builtin_truth(test, case, inputs, left=()):
    """The outputs, and what the operation leaves in the inputs of these names, which no output tells."""
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


def ground_truth(test, case, inputs, name):
    """The outputs by the ground truth of that name; Unavailable if it is not here."""
    if name == "builtin":
        return builtin_truth(test, case, inputs)[0]
    for function in test.GROUND_TRUTHS:
        if truth_name(function) == name:
            try:
                return as_outputs(
                    definition_of(test), function(test, copies(inputs)), name
                )
            except Exception as why:
                if refusal(why) is None:
                    raise
                raise Unavailable(refusal(why)) from why
    raise Unavailable("the operation has no call of it")


def refusal(why):
    """What a library says that has no such function, no kernel for this device or shape, nothing to compile it with, or
    not all of its parts installed; None: it failed."""
    module = isinstance(why, AttributeError) and str(why).startswith("module '")
    if isinstance(why, (NotImplementedError, ImportError)) or module:
        return str(why)
    words = (
        "not supported|unsupported|not implemented|no kernel image"
        "|compute capability|static assertion|could not find nvcc"
    )
    library = isinstance(why, (RuntimeError, ValueError))
    found = library and re.search(f".*({words}).*", str(why), re.IGNORECASE)
    return found[0].strip()[:300] if found else None


def truth_name(function):
    return function.__name__.rpartition("_")[2]


def truth_names(functions):
    """For parametrize: those that the class has, in order of preference."""
    return [*(truth_name(function) for function in functions), "builtin"]


def rule_of(test, case, inputs, index):
    """atol, rtol and hit ratio that `reftest verify` holds an output to: as reftest's kernels have it for these inputs;
    where they are not here as the class has it for this size, and of other cases the widest of all sizes."""
    try:
        return kernels().rule(kernels_case(test, case, inputs), index)
    except Unavailable:
        rules = getattr(test, "RULES", ())
        rows = rules[index] if rules else ()
    if not rows:
        raise Unavailable(f"what bounds {test.NAME} has, nothing says")
    if len(rows) > 1 and case in test.SIZES:
        return rows[test.SIZES.index(case)]
    return widest(*rows)


def widest(*rules):
    return (
        max(rule[0] for rule in rules),
        max(rule[1] for rule in rules),
        min(rule[2] for rule in rules),
    )


def tolerance(test, case, inputs, index, dtype, name):
    """atol, rtol and hit ratio of an output. reftest's kernels and torch hold to the bounds that `reftest verify` has. Other
    libraries round on the way, so that at least the dtype's usual tolerance is theirs, and the one that the family has for
    them."""
    rule = rule_of(test, case, inputs, index)
    if name in ("builtin", "torch"):
        return rule
    usual = TOLERANCES.get(dtype, (0.0, 0.0, 1.0))
    own = (
        test.TOLERANCE(definition_of(test), case.axes, index)
        if test.TOLERANCE
        else usual
    )
    return widest(usual, own, rule)


def first_truth(test, case, inputs):
    """Name and outputs of the first ground truth that is here; skips with every reason when none is."""
    reasons = []
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            return name, ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    pytest.skip("no ground truth: " + "; ".join(reasons))


# ---- comparing ------------------------------------------------------------------------------------------------------


def compute_error_metrics(actual, expected, atol=0.0, rtol=0.0):
    """How far two tensors are apart, over one rule: an element is hit if |actual - expected| <= atol + rtol |expected|, or
    both are the same infinity. NaN never is."""
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
    """At least `hit_ratio` of the elements are within the bounds; else every figure and the five worst places."""
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    )
    metrics = compute_error_metrics(actual, expected, atol, rtol)
    enough = metrics["hits"] >= hit_ratio * metrics["elements"]
    assert enough, f"{what}:\n{describe(metrics, atol, rtol, hit_ratio)}"


def assert_close(actual, expected, atol, rtol, what="output"):
    check_hit_ratio(actual, expected, atol, rtol, 1.0, what)


def is_judged(test, inputs, outputs):
    """Did the family judge what no element rule fits? Then no ground truth is needed."""
    return test.JUDGE is not None and test.JUDGE(definition_of(test), inputs, outputs)


def compare(test, case, inputs, outputs, truth, name):
    """Are these outputs right, by the ground truth of that name? What no element rule fits, the family judges."""
    definition = definition_of(test)
    if is_judged(test, inputs, outputs):
        return
    for index, (output, spec) in enumerate(definition["outputs"].items()):
        what = f"{test.NAME}, output '{output}' against {name}"
        assert isinstance(outputs[index], torch.Tensor), (
            f"{what}: a {type(outputs[index]).__name__} is no tensor"
        )
        if name == "builtin":
            text = kernels_case(test, case, inputs)
            verdict = kernels().judge(
                text, index, in_order(definition, inputs), contiguous(outputs), truth
            )
            assert not verdict, f"{what}: {verdict}"
            if verdict == "":
                continue
        rule = tolerance(test, case, inputs, index, dtype_of(spec), name)
        check_hit_ratio(
            outputs[index], truth[index].to(outputs[index].device), *rule, what=what
        )


def changed_inputs(test, inputs, left):
    """Those that the operation may write to and that were written to, or should have been."""
    return {
        name: leaves
        for name, leaves in (leaves_of(test) or {}).items()
        if isinstance(inputs[name], torch.Tensor)
        and (leaves is WRITTEN or not same_bits(left[name], inputs[name]))
    }


def own_truths(test, case, inputs, changed):
    """What those inputs should hold that no output tells; Unavailable where reftest's kernels are."""
    names = [name for name, leaves in changed.items() if not isinstance(leaves, int)]
    return builtin_truth(test, case, inputs, names)[1] if names else {}


def compare_left(test, case, inputs, left, truth, name):
    """Does every input that was written to hold what the operation leaves there?"""
    definition, changed = definition_of(test), changed_inputs(test, inputs, left)
    try:
        own = own_truths(test, case, inputs, changed)
    except Unavailable:
        own = {}  # test_inputs_are_kept says so
    for place, (given, spec) in enumerate(definition["inputs"].items()):
        what = f"{test.NAME}, what it leaves in its input '{given}' against {name}"
        leaves = changed.get(given)
        if isinstance(leaves, int):
            rule = tolerance(test, case, inputs, leaves, dtype_of(spec), name)
            check_hit_ratio(
                left[given], truth[leaves].to(left[given].device), *rule, what
            )
        elif given in own:
            text = kernels_case(test, case, inputs)
            rule = kernels().rule(text, len(definition["outputs"]) + place)
            check_hit_ratio(left[given], own[given], *rule, what)


def contiguous(tensors):
    return [tensor.contiguous() for tensor in tensors]


# ---- what the tests do ----------------------------------------------------------------------------------------------


def check_definition(test):
    """The reference and the constants here are those of the JSON file."""
    definition = definition_of(test)
    assert test.REFERENCE == definition["reference"], (
        f"the reference of definitions/{test.OP_TYPE}/{test.NAME}.json has changed since this file was made: "
        "run `reftest generate`"
    )
    for name, axis in definition["axes"].items():
        if axis["type"] == "const":
            assert test.AXES[name] == axis["value"], (
                f"axis '{name}' is {axis['value']} in the JSON file: run `reftest generate`"
            )


def small_run(test, device):
    case = (
        test.SIZES[0]
        if test.SIZES
        else pytest.skip("the family has no sizes for this definition")
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


def check_inputs_are_kept(test, device):
    """Inputs hold what they held, and those that the operation may write to that or what it leaves there."""
    case, inputs, _, left = small_run(test, device)
    if leaves_of(test) is None:
        pytest.skip("which inputs this operation may write to, nothing says")
    changed = changed_inputs(test, inputs, left)
    if not changed:
        return
    if all(isinstance(leaves, int) for leaves in changed.values()):
        name, truth = first_truth(test, case, inputs)
    else:
        try:
            name, truth = "builtin", ground_truth(test, case, inputs, "builtin")
        except Unavailable as why:
            pytest.skip(f"what is left in {list(changed)}, no output tells: {why}")
    compare_left(test, case, inputs, left, truth, name)


def check_numerical_correctness(test, case, device):
    inputs = make_inputs(test, case, device)
    check_outputs(test, case, inputs, *run_and_leave(test, inputs))


def check_outputs(test, case, inputs, outputs, left):
    check_shapes(test, case, outputs)
    if is_judged(test, inputs, outputs):
        return
    name, truth = first_truth(test, case, inputs)
    compare(test, case, inputs, outputs, truth, name)
    compare_left(test, case, inputs, left, truth, name)
    if name not in ("torch", "builtin"):
        compare_with_builtin(test, case, inputs, outputs, left)


def compare_with_builtin(test, case, inputs, outputs, left):
    """What a library allows that rounds on the way, reftest's kernels may not: where they are here, their bounds count."""
    try:
        truth = ground_truth(test, case, inputs, "builtin")
    except Unavailable:
        return
    compare(test, case, inputs, outputs, truth, "builtin")
    compare_left(test, case, inputs, left, truth, "builtin")


def check_determinism(test, device):
    """The same inputs give the same bits, whatever the seeds of torch, NumPy and Python, unless the operation draws from
    them."""
    _, inputs, *first = small_run(test, device)
    samples = getattr(test, "SAMPLES", False)
    second = run_and_leave(test, inputs, seed=0 if samples else 1)
    seeds = "and seeds" if samples else "with other seeds of torch, NumPy and Python"
    check_same(test, first, second, f"between two runs on the same inputs {seeds}")


def same_memory(one, other):
    """Do two tensors share memory? Both are held, so that neither can have got what the other gave back."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    places = [value.untyped_storage().data_ptr() for value in (one, other)]
    return places[0] == places[1] != 0


def check_same(test, one, other, when):
    """The same bits in outputs, and in what is left in inputs."""
    (first, first_left), (second, second_left) = one, other
    for name, a, b in zip(definition_of(test)["outputs"], first, second, strict=True):
        assert same_bits(a, b), f"output '{name}' differs {when}"
    for name, a in first_left.items():
        assert same_bits(a, second_left[name]), (
            f"what is left in input '{name}' differs {when}"
        )


def check_calls_are_independent(test, device):
    """What is returned depends on the inputs of this call alone: other contents of the same shapes get an answer of their
    own, and the first contents the same one as before."""
    small = [case for case in test.SIZES if case.label == "small"]
    case = small[-1] if small else pytest.skip("the family has no small size")
    inputs = make_inputs(test, case, device)
    run = compile_reference(test.REFERENCE, test.NAME)
    first = run_and_leave(test, inputs, run=run)
    second_case, second_inputs = make_second_inputs(test, case, device)
    outputs, left = run_and_leave(test, second_inputs, run=run)
    third = run_and_leave(test, inputs, run=run)
    for name, a, b in zip(
        definition_of(test)["outputs"], first[0], outputs, strict=True
    ):
        assert not same_memory(a, b), (
            f"output '{name}' overwrites that of the call before"
        )
    check_same(test, first, third, "once the reference was called on other contents")
    check_outputs(test, second_case, second_inputs, outputs, left)


def check_edge_case(test, case, device):
    """Shapes hold, and where there is a ground truth the values do."""
    inputs = make_inputs(test, case, device)
    outputs, left = run_and_leave(test, inputs)
    check_shapes(test, case, outputs)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    changed = changed_inputs(test, inputs, left).keys()
    if all(
        value.numel() == 0 for value in [*tensors, *(left[name] for name in changed)]
    ):
        return
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            truth = ground_truth(test, case, inputs, name)
        except Unavailable:
            continue
        compare(test, case, inputs, outputs, truth, name)
        compare_left(test, case, inputs, left, truth, name)
        return
    is_judged(test, inputs, outputs)


def check_against(test, case, name, device):
    inputs = make_inputs(test, case, device)
    try:
        truth = ground_truth(test, case, inputs, name)
    except Unavailable as why:
        pytest.skip(f"{name}: {why}")
    outputs, left = run_and_leave(test, inputs)
    compare(test, case, inputs, outputs, truth, name)
    compare_left(test, case, inputs, left, truth, name)


def check_ground_truths_agree(test, case, device):
    inputs = make_inputs(test, case, device)
    found, reasons = [], []
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            found.append((name, ground_truth(test, case, inputs, name)))
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    if len(found) < 2:
        pytest.skip("fewer than two ground truths are here: " + "; ".join(reasons))
    *others, (first, expected) = found
    for name, actual in others:
        check_truths_agree(test, case, inputs, (name, actual), (first, expected))


def check_truths_agree(test, case, inputs, one, other):
    """What no element rule fits, each must be right in by itself."""
    (name, actual), (first, expected) = one, other
    if is_judged(test, inputs, actual) and is_judged(test, inputs, expected):
        return
    for index, (output, spec) in enumerate(definition_of(test)["outputs"].items()):
        check_hit_ratio(
            actual[index],
            expected[index],
            *tolerance(test, case, inputs, index, dtype_of(spec), name),
            what=f"{test.NAME}, output '{output}': {name} against {first}",
        )
