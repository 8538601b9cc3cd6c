# Reads the shared memory beyond the end of its inputs, and returns these bytes as its answer.
# expect: not passed
import ctypes

import torch


def run(hidden_states, weight):
    size = hidden_states.numel() * 2
    past = max(hidden_states.data_ptr() + size, weight.data_ptr() + weight.numel() * 2)
    found = ctypes.string_at(past, size)
    return torch.frombuffer(bytearray(found), dtype=torch.bfloat16).view(hidden_states.shape)
