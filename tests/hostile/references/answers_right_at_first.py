# Is right in its first call and wrong in each later one.
# expect: failed nondeterministic | failed numeric
import torch

calls = []


def run(hidden_states, weight):
    calls.append(1)
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype) * (len(calls) == 1)
