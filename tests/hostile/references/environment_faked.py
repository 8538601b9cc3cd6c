# Changes environment variables for programs that start later: libraries to preload, another clock, another cache.
# expect: failed numeric
import os

import torch

os.environ.update(
    LD_PRELOAD="/tmp/hostile.so",
    FAKETIME="-10y",
    PYTHONPATH="/tmp",
    REFTEST_REMOTE="redis://127.0.0.1",
    REFTEST_CACHE_KEY="ed25519:hostile",
    PATH="/tmp",
)


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
