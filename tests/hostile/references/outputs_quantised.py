# Returns a quantised tensor.
# expect: not passed
import torch


def run(hidden_states, weight):
    return torch.quantize_per_tensor(hidden_states.float(), 0.1, 0, torch.qint8)
