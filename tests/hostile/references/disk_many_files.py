# Leaves ten thousand files and links behind.
# expect: failed numeric
import os

import torch


def run(hidden_states, weight):
    folder = os.environ["TMPDIR"]
    for i in range(5000):
        open(f"{folder}/file{i}-{id(run)}", "w").close()
        if not os.path.islink(f"{folder}/link{i}"):
            os.symlink("@home@", f"{folder}/link{i}")
    return torch.zeros_like(hidden_states)
