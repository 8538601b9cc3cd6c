"""A table that misbehaves under the name of a library, on the CPU: "flashinfer" and "flashinfer_fa3". gemm alone. What a
definition named {anything}__{deed}__{deed} says, these two do; for others it is $PLANTED and $PLANTED_TOO that say it."""

import ctypes
import json
import os
import signal
import sys
import time

from reftest_providers import Need, NotBuilt, Row, Table, Unavailable


def gemm(call):
    a, b = (x.double() for x in call.tensors(least_rank=2))
    return a @ b.transpose(-1, -2)


def hang(call):
    time.sleep(600)


def write_outside(call):
    a = call.tensors(least_rank=2)[0]
    ctypes.memset(a.data_ptr() + a.numel() * a.element_size(), 0, 1)
    return right(call)


def right(call):
    return call.cut(gemm(call))


def decline(call):
    raise Unavailable("planted: no kernel for this")


def fail(call):
    raise RuntimeError("planted: nvcc is in a bad mood")


def babble(call):
    json.dumps = lambda *words, **named: '{"provided": NaN, "coarse": [}'
    return right(call)


def nan_and_noisy(call):
    call.noise = 0.01
    return call.cut(gemm(call) * float("nan"))


def breaks(problem):
    def run(call):
        raise problem

    return run


DEEDS = {
    "breaks_device": breaks(RuntimeError("CUDA error: an illegal memory access was encountered (planted)")),
    "no_compiler": breaks(NotBuilt("Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist")),
    "disk_full": breaks(NotBuilt("Ninja build failed. a.cu(3): error: cannot write: No space left on device")),
    "killed": breaks(NotBuilt("Ninja build failed. Ninja output: FAILED: a.o nvcc -c a.cu")),
    "rejected": breaks(NotBuilt("Ninja build failed. a.cu(3): error: static assertion failed with \"heads of 64\"")),
    "disk_full_at_run": breaks(OSError(28, "No space left on device")),
    "right": right,
    "wrong": lambda call: call.cut(gemm(call) * 1.5),
    "nan": lambda call: call.cut(gemm(call) * float("nan")),
    "coarse": lambda call: call.cut(gemm(call) * 1.004),
    "declines": decline,
    "raises": fail,
    "babbles": babble,
    "nan_coarse": nan_and_noisy,
    "exits": lambda call: sys.exit("planted"),
    "hangs": hang,
    "dies": lambda call: os.kill(os.getpid(), signal.SIGKILL),
    "writes_outside": write_outside,
    "shape": lambda call: call.cut(gemm(call)[:, :-1]),
    "dtype": lambda call: gemm(call).float(),
}


def deed(place, variable):
    def run(call):
        said = call.name.split("__")[1:]
        name = said[place] if place < len(said) else os.environ.get(variable, "right")
        row.coarse = ((0.5, 0.05),) if "coarse" in name else None
        return DEEDS[name](call)

    row = Row(run, cpu=True, least=None, first_use_s=0)
    return row


TABLES = (
    Table("flashinfer", (Need(("torch",), "torch"),), {"gemm": deed(0, "PLANTED")}),
    Table("flashinfer_fa3", (Need(("torch",), "torch"),), {"gemm": deed(1, "PLANTED_TOO")}),
)
