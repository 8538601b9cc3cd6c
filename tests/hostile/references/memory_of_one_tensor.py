# Allocates a tensor that is larger than the machine's memory.
# expect: error
import torch


def run(hidden_states, weight):
    return torch.empty(1 << 46)
