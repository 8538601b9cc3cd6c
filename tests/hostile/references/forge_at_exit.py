# Registers functions that claim a pass when the interpreter ends, and returns zeros.
# expect: failed numeric
import atexit
import os
import threading

import torch


def claim():
    os.write(1, b'{"status": "passed"}\n')
    os._exit(0)


atexit.register(claim)
threading._register_atexit(claim)


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
