# Writes beyond the end of its inputs from the CPU, and returns the right answer.
# expect: error out_of_bounds
# on_cuda: error crashed
import ctypes

import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    ctypes.memset(weight.data_ptr() + 2 * weight.numel(), 0, 8)
    return (normed * weight.float()).to(hidden_states.dtype)
