# Leaves folders behind that are nested two thousand deep.
# expect: failed numeric
import os

import torch


def run(hidden_states, weight):
    os.chdir(os.environ["TMPDIR"])
    for _ in range(2000):
        os.makedirs("folder", exist_ok=True)
        os.chdir("folder")
    return torch.zeros_like(hidden_states)
