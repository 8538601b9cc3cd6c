# Stops every judge process, and does not let it continue.
# expect: error raised | error timeout
# gap: signals
# uses: processes_named
# reached: error timeout
import os
import signal


def run(hidden_states, weight):
    judges = processes_named("reftest-judge")
    for pid in judges:
        os.kill(pid, signal.SIGSTOP)
    raise AssertionError(f"reached: {judges}" if judges else "contained")
