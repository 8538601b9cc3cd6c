# Makes the functions of the clock return numbers that are not times.
# expect: not passed
import time

import torch

time.perf_counter = lambda: float("nan")
time.time = time.monotonic = lambda: -1e300


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
