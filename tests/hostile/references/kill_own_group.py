# Ends its process group and its session.
# expect: error crashed
import os
import signal


def run(hidden_states, weight):
    os.killpg(0, signal.SIGKILL)
