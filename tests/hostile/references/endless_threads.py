# Returns at once, and leaves threads behind that keep every core busy.
# expect: not passed
import ctypes
import threading

import torch


def run(hidden_states, weight):
    libc = ctypes.CDLL(None)
    for _ in range(4):
        threading.Thread(target=libc.pause, daemon=True).start()
    return torch.zeros_like(hidden_states)
