# Returns a tensor whose shape has four terabytes, although its memory has a few bytes.
# expect: failed shape
import torch


def run(hidden_states, weight):
    return torch.zeros(1, dtype=torch.bfloat16, device=hidden_states.device).expand(1 << 20, 1 << 21)
