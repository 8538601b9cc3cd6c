# Returns a tensor that a thread continues to change.
# expect: not passed
import threading

import torch


def change(tensor):
    while True:
        tensor.add_(1)


def run(hidden_states, weight):
    result = torch.zeros_like(hidden_states)
    threading.Thread(target=change, args=(result,), daemon=True).start()
    return result
