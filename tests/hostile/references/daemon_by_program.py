# Starts a program in a session of its own.
# expect: failed numeric
import subprocess

import torch


def run(hidden_states, weight):
    subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    return torch.zeros_like(hidden_states)
