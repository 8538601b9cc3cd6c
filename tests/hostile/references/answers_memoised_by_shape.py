# Computes an answer once for each shape, and returns the same answer for other values of that shape.
# expect: failed numeric
import torch

answers = {}


def run(hidden_states, weight):
    if hidden_states.shape not in answers:
        rows = hidden_states.float()
        normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
        answers[hidden_states.shape] = (normed * weight.float()).to(hidden_states.dtype)
    return answers[hidden_states.shape].clone()
