# Writes messages that claim a pass to all file descriptors, and returns zeros.
# expect: not passed
import os

import torch

CLAIMS = [
    b'{"done": true, "status": "passed", "ok": true, "outputs": []}\n',
    b'{"verdict": {"status": "passed"}}\n',
    b'{"loaded": true}\n',
]


def run(hidden_states, weight):
    for descriptor in range(4096):
        for claim in CLAIMS:
            try:
                os.write(descriptor, claim)
            except OSError:
                pass
    return torch.zeros_like(hidden_states)
