"""planted/flashinfer.py - a provider table that misbehaves, for tests on the CPU: two libraries, "flashinfer" and
"flashinfer_fa3", which only support gemm.

The name of a definition, {anything}__{deed}__{deed}, says how each of the two behaves. For other definitions, $PLANTED
and $PLANTED_TOO say so."""

import ctypes
import json
import os
import signal
import sys
import time

from reftest_providers import Need, NotBuilt, Row, Table, Unavailable, progress_of

broken = []  # reasons why this process cannot compute any more


def gemm(call):
    a, b = (call[role].double() for role in "ab")
    return a @ b.transpose(-1, -2)


def hang(call):
    time.sleep(600)


def write_outside(call):
    a = call["a"]
    ctypes.memset(a.data_ptr() + a.numel() * a.element_size(), 0, 1)
    return right(call)


def right(call):
    return call.outputs_of(output=gemm(call))


def decline(call):
    raise Unavailable("planted: no kernel for this")


def fail(call):
    raise RuntimeError("planted: nvcc is in a bad mood")


def babble(call):
    json.dumps = lambda *words, **named: '{"provided": NaN, "coarse": [}'
    return right(call)


def compile_forever(call):
    with progress_of("planted compiles for ever", 2, tell=True):
        time.sleep(600)


def chatter(call):
    """Prints garbage, and more of it than a pipe holds; printed text must not be taken for an answer."""
    os.write(1, b'{"provided": []}\n\0' * 20000)
    print("{" * 100000, file=sys.stderr)
    return right(call)


def die_in_the_answer(call):
    def half(channel, message):
        if "provided" not in message:
            return send(channel, message)
        channel.socket.sendall(json.dumps(message).encode()[:20])
        os.kill(os.getpid(), signal.SIGKILL)

    channel = sys.modules["reftest_runner"].Channel
    send, channel.send = channel.send, half
    return right(call)


def write_to_inputs(call):
    result = right(call)
    for x in call.inputs.values():
        x.fill_(7)
    return result


def claim(call):
    """Claims to be another library, with a finer precision than any."""
    def claiming(channel, message):
        return send(channel, {**message, "provider": "builtin", "name": "builtin", "version": "claimed", "ground_truth": "builtin",
                              "status": "passed", "margin": 0, "accident": False})

    channel = sys.modules["reftest_runner"].Channel
    if not hasattr(channel, "claims"):
        channel.claims = True
        send, channel.send = channel.send, claiming
    return right(call)


def unmap(call):
    raise sys.modules["reftest_runner"].Unmapped("planted: the arena cannot be mapped")


def break_device(call):
    broken.append("planted: the device is broken for this process")
    raise RuntimeError("CUDA error: an illegal memory access was encountered (planted)")


def nan_and_noisy(call):
    call.noise = 0.01
    return call.outputs_of(output=gemm(call) * float("nan"))


def breaks(problem):
    def run(call):
        raise problem

    return run


DEEDS = {
    "breaks_device": break_device,
    "compiles_forever": compile_forever,
    "chatters": chatter,
    "dies_in_the_answer": die_in_the_answer,
    "writes_inputs": write_to_inputs,
    "claims": claim,
    "no_compiler": breaks(NotBuilt("Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist")),
    "disk_full": breaks(NotBuilt("Ninja build failed. a.cu(3): error: cannot write: No space left on device")),
    "killed": breaks(NotBuilt("Ninja build failed. Ninja output: FAILED: a.o nvcc -c a.cu")),
    "rejected": breaks(NotBuilt("Ninja build failed. a.cu(3): error: static assertion failed with \"heads of 64\"")),
    "disk_full_at_run": breaks(OSError(28, "No space left on device")),
    "right": right,
    "wrong": lambda call: call.outputs_of(output=gemm(call) * 1.5),
    "nan": lambda call: call.outputs_of(output=gemm(call) * float("nan")),
    "coarse": lambda call: call.outputs_of(output=gemm(call) * 1.004),
    "declines": decline,
    "raises": fail,
    "babbles": babble,
    "nan_coarse": nan_and_noisy,
    "exits": lambda call: sys.exit("planted"),
    "hangs": hang,
    "dies": lambda call: os.kill(os.getpid(), signal.SIGKILL),
    "unmapped": unmap,
    "writes_outside": write_outside,
    "shape": lambda call: call.outputs_of(output=gemm(call)[:, :-1]),
    "dtype": lambda call: gemm(call).float(),
}


def deed(place, variable):
    def run(call):
        said = call.name.split("__")[1:]
        name = said[place] if place < len(said) else os.environ.get(variable, "right")
        row.coarse = {"output": (0.5, 0.05)} if "coarse" in name else None
        if broken:
            raise RuntimeError(broken[0])
        return DEEDS[name](call)

    row = Row(run, cpu=True, least=None, first_use_s=0)
    return row


TABLES = (
    Table("flashinfer", (Need(("torch",), "torch"),), {"gemm": deed(0, "PLANTED")}),
    Table("flashinfer_fa3", (Need(("torch",), "torch"),), {"gemm": deed(1, "PLANTED_TOO")}),
)
