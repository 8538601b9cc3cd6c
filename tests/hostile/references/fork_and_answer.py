# Forks a child, which answers instead of its parent. The parent waits.
# expect: not passed
import os

import torch


def run(hidden_states, weight):
    child = os.fork()
    if child != 0:
        os.waitpid(child, 0)
        os._exit(0)
    return torch.zeros_like(hidden_states)
