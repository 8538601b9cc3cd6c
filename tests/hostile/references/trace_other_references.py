# Looks for the memory of every process but its own, also those of other references, of reftest and of its judges.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    known = {int("@sleeper@"), int("@victim@"), int("@stopped@"), 1 if os.getppid() else 0}
    reached = []
    for pid in range(1, 5000):
        try:
            if pid != os.getpid() and pid not in known:
                os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                reached.append(open(f"/proc/{pid}/cmdline").read())
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
