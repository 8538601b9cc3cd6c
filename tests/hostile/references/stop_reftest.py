# Stops the main process of reftest.
# expect: error raised
# gap: signals
# uses: processes_named
# destroys: run
import os
import signal


def run(hidden_states, weight):
    mains = processes_named("reftest")
    for pid in mains:
        os.kill(pid, signal.SIGSTOP)
    raise AssertionError(f"reached: {mains}" if mains else "contained")
