# Kills every judge process.
# expect: error raised | error crashed
# gap: signals
# uses: processes_named
# reached: error crashed
import os
import signal


def run(hidden_states, weight):
    judges = processes_named("reftest-judge")
    for pid in judges:
        os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"reached: {judges}" if judges else "contained")
