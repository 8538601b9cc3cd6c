# Changes torch's default dtype, so that code that runs later would compute with another dtype.
# expect: error raised
import torch


def run(hidden_states, weight):
    torch.set_default_dtype(torch.float64)
    return torch.zeros_like(hidden_states)
