# Leaves a daemon behind, after two forks, with its own session and process group, no file descriptors and another name.
# expect: failed numeric
import ctypes
import os
import time

import torch


def run(hidden_states, weight):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.closerange(0, 4096)
            ctypes.CDLL(None).prctl(15, b"reftest", 0, 0, 0)
            time.sleep(1000)
        os._exit(0)
    return torch.zeros_like(hidden_states)
