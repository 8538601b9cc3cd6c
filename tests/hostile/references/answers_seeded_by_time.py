# Answers anew each time.
# expect: not passed
import time

import torch


def run(hidden_states, weight):
    torch.manual_seed(time.time_ns())
    return torch.randn(hidden_states.shape).to(hidden_states.dtype)
