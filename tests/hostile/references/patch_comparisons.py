# Replaces torch's comparisons by functions that always agree, and returns zeros.
# expect: failed numeric
import torch


def agree(*arguments, **keywords):
    return True


torch.allclose = torch.equal = torch.testing.assert_close = agree
torch.Tensor.allclose = torch.Tensor.equal = torch.Tensor.__eq__ = agree


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
