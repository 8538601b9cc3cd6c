# Leaves a process behind that keeps the pipe for the reference's output open and writes to the pipe.
# expect: failed numeric
import os
import time

import torch


def run(hidden_states, weight):
    if os.fork() == 0:
        os.setsid()
        for _ in range(600):
            os.write(1, b"still here\n")
            time.sleep(0.1)
        os._exit(0)
    return torch.zeros_like(hidden_states)
