# Returns the right answer with its autograd graph.
# expect: passed
import torch


def run(hidden_states, weight):
    rows = hidden_states.float().requires_grad_()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
