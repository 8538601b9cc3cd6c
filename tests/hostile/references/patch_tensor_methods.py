# Replaces the methods with which the runner stores an output, so that nothing is stored.
# expect: not passed
import torch

torch.Tensor.copy_ = lambda self, *arguments, **keywords: self
torch.Tensor.data_ptr = lambda self: 0
torch.Tensor.detach = lambda self: self
torch.Tensor.untyped_storage = lambda self: None


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
