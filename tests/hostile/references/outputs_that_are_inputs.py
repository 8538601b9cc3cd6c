# Overwrites its input with the right answer, and returns the input.
# expect: failed mutated_input
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return hidden_states.copy_((normed * weight.float()).to(hidden_states.dtype))
