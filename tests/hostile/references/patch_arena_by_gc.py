# Finds the shared memory with gc and overwrites all of it.
# expect: not passed
import gc
import mmap

import torch


def run(hidden_states, weight):
    for found in gc.get_objects():
        arena = getattr(found, "map", None) if type(found).__name__ == "Arena" else None
        if isinstance(arena, mmap.mmap):
            arena[:] = b"\x3f\x80" * (len(arena) // 2)
    return torch.zeros_like(hidden_states)
