# Returns a tensor whose class replaces torch's copy by a function that copies nothing.
# expect: not passed
import torch


class Keeps(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function is torch.Tensor.copy_:
            return arguments[0]
        return super().__torch_function__(function, types, arguments, keywords or {})


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states).as_subclass(Keeps)
