# Returns a tensor of another shape, whose class reports the expected shape and dtype.
# expect: not passed
import torch


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return arguments[0]

    shape = property(lambda self: torch.Size([1, 64]))
    dtype = torch.bfloat16
    device = torch.device("cpu")


def run(hidden_states, weight):
    return torch.zeros(3, 5).as_subclass(Liar)
