# Changes ctypes so that calls of C libraries do nothing, and returns zeros.
# expect: failed numeric
# on_cuda: error raised
import ctypes

import torch

ctypes.CDLL = ctypes.PyDLL = lambda *arguments, **keywords: None
ctypes.memmove = ctypes.memset = lambda *arguments: None


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
