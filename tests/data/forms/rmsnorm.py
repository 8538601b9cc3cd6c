"""RMS norm over the last axis; a module docstring, which leaves no trace."""
import math
import torch
from typing import Optional, Tuple


EPS = 1e-6  # as the model's configuration has it


@torch.no_grad()
def run(hidden_states, weight):
    """One-line docstring."""
    batch_size, hidden_size = hidden_states.shape
    # Check constants
    assert hidden_size == 4096, f"hidden_size is {hidden_size:>8}, not {4096}"

    x = hidden_states.to(torch.float32)
    inv_rms = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + EPS)
    try:
        y = (x * inv_rms) * weight.to(torch.float32)
    finally:
        del inv_rms
    return y.to(hidden_states.dtype)
