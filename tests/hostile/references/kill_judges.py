# Kills every process that judges.
# expect: error raised | error crashed
# gap: signals
# reached: error crashed
import os
import signal

WANTED = {"reftest-judge"}


def others():
    """Returns the processes whose names are in WANTED, as far as this process may see them."""
    found = []
    for pid in range(2, 5000):
        try:
            with open(f"/proc/{pid}/comm") as file:
                if pid != os.getpid() and file.read().strip() in WANTED:
                    found.append(pid)
        except OSError:
            pass
    return found


def run(hidden_states, weight):
    judges = others()
    for pid in judges:
        os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"reached: {judges}" if judges else "contained")
