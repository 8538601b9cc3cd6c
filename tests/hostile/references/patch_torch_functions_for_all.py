# Leaves a torch function mode active, which handles every later call of torch.
# expect: not passed
import torch
from torch.overrides import TorchFunctionMode


class Answers(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        return arguments[0] if arguments else None


def run(hidden_states, weight):
    result = torch.zeros_like(hidden_states)
    Answers().__enter__()
    return result
