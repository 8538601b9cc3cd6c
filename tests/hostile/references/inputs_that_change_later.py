# Returns zeros, and makes this answer right later: a thread sets all inputs to zero, again and again.
# expect: not passed
import threading

import torch


def change(*tensors):
    while True:
        for tensor in tensors:
            tensor.data.zero_()


def run(hidden_states, weight):
    threading.Thread(target=change, args=(hidden_states, weight), daemon=True).start()
    return torch.zeros_like(hidden_states)
