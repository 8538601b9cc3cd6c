# Stops the main process of reftest.
# expect: error raised
# gap: signals
# destroys: run
import os
import signal

WANTED = {"reftest"}


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
    mains = others()
    for pid in mains:
        os.kill(pid, signal.SIGSTOP)
    raise AssertionError(f"reached: {mains}" if mains else "contained")
