# Stops the processes of other references, and the process that starts them.
# expect: error raised | error timeout
# gap: signals
import os
import signal


def run(hidden_states, weight):
    own = {int(number) for number in os.listdir("/proc/self/task")}
    stopped = []
    for pid in range(2, 5000):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                if pid not in own and "runner.py" in file.read():
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
        except OSError:
            pass
    raise AssertionError(f"reached: {stopped}" if stopped else "contained")
