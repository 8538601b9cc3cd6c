# Searches the shared memory for the ground truth, and returns the part that looks like it.
# expect: not passed
import gc
import mmap

import torch


def run(hidden_states, weight):
    size = hidden_states.numel() * 2
    for found in gc.get_objects():
        arena = getattr(found, "map", None) if type(found).__name__ == "Arena" else None
        if isinstance(arena, mmap.mmap):
            for offset in range(0, len(arena) - size, 64):
                guess = torch.frombuffer(arena, dtype=torch.bfloat16, count=size // 2, offset=offset).view_as(
                    hidden_states
                )
                if guess.abs().sum() > 0 and not torch.equal(guess, hidden_states):
                    return guess.clone()
    return torch.zeros_like(hidden_states)
