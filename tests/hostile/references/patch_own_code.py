# Makes the machine code of a library in its process writable, and overwrites the code.
# expect: not passed
import ctypes
import mmap

import torch


def run(hidden_states, weight):
    libc = ctypes.CDLL(None)
    for name in ("prctl", "seccomp", "kill", "_exit"):
        try:
            place = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        page = place & -mmap.PAGESIZE
        if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(2 * mmap.PAGESIZE), 7) == 0:
            ctypes.memmove(place, b"\x31\xc0\xc3", 3)
    return torch.zeros_like(hidden_states)
