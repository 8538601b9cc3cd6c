# Stops its own process group.
# expect: error timeout
import os
import signal


def run(hidden_states, weight):
    os.killpg(0, signal.SIGSTOP)
