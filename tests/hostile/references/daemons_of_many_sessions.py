# Leaves 800 processes running, each in a session of its own.
# expect: failed numeric | error process_limit
import subprocess

import torch

for _ in range(800):
    subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)  # fmt: skip


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
