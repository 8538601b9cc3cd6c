# Sends the pool answers for three calls before its first call returns. Each call returns zeros.
# expect: not passed
import os

import torch


def run(hidden_states, weight):
    shape = list(hidden_states.shape)
    answer = (
        '{"ran": [{"shape": %s, "dtype": "bfloat16", "grad": false}], "list": false, "touched": [], "seconds": 0.1}\n'
    )
    for descriptor in range(512, 1024):
        try:
            os.write(descriptor, (answer % shape).encode() * 3)
        except OSError:
            pass
    return torch.zeros_like(hidden_states)
