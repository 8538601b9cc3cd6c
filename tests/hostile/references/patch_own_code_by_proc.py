# Overwrites machine code in its process through /proc/self/mem, which ignores the protection of pages.
# expect: not passed
import ctypes

import torch


def run(hidden_states, weight):
    libc = ctypes.CDLL(None)
    place = ctypes.cast(libc.prctl, ctypes.c_void_p).value
    try:
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(place)
            memory.write(b"\x31\xc0\xc3")
    except OSError as problem:
        print("refused:", problem)
    return torch.zeros_like(hidden_states)
