# Returns an object that claims to be a tensor.
# expect: not passed
import torch


class Claims:
    __class__ = torch.Tensor
    dtype, device, requires_grad = torch.bfloat16, torch.device("cpu"), False

    def __init__(self, shape):
        self.shape = shape

    def detach(self):
        return self


def run(hidden_states, weight):
    return Claims(hidden_states.shape)
