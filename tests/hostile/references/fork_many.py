# Leaves 20 processes behind in each call. These processes ignore every signal that a process can ignore.
# expect: failed numeric
import os
import signal
import time

import torch


def run(hidden_states, weight):
    for _ in range(20):
        if os.fork() == 0:
            for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(1)
    return torch.zeros_like(hidden_states)
