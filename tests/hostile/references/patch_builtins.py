# Replaces builtin functions that the runner uses.
# expect: not passed
import builtins

import torch

builtins.len = lambda value: 1
builtins.isinstance = lambda value, kind: True
builtins.list = lambda *values: []
builtins.sorted = lambda values, **keywords: []


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
