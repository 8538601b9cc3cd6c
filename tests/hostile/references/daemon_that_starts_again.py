# Leaves a process behind that starts a copy of itself and then ends. Each copy does the same.
# expect: failed numeric
import os
import time

import torch


def run(hidden_states, weight):
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if os.fork() != 0:
                os._exit(0)
            os.setsid()
            time.sleep(0.005)
        os._exit(0)
    return torch.zeros_like(hidden_states)
