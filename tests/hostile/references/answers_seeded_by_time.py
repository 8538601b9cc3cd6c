# Returns random numbers that are seeded by the time, so each call returns another answer.
# expect: not passed
import time

import torch


def run(hidden_states, weight):
    torch.manual_seed(time.time_ns())
    return torch.randn(hidden_states.shape).to(hidden_states.dtype)
