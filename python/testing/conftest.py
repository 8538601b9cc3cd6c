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
