# Removes sys.stdout and sys.stderr, which the runner flushes.
# expect: failed numeric
import sys

import torch


def run(hidden_states, weight):
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
    return torch.zeros_like(hidden_states)
