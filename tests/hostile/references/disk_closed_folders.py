# Leaves folders behind that nobody may enter or change.
# expect: failed numeric
import os

import torch


def run(hidden_states, weight):
    folder = os.environ["TMPDIR"]
    os.chmod(folder, 0o700)
    if not os.path.exists(f"{folder}/outer"):
        os.makedirs(f"{folder}/outer/inner")
        open(f"{folder}/outer/inner/file", "w").close()
        os.chmod(f"{folder}/outer/inner", 0)
        os.chmod(f"{folder}/outer", 0o500)
    os.chmod(folder, 0)
    return torch.zeros_like(hidden_states)
