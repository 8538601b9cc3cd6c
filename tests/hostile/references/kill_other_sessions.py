# Asks the kernel whether it may kill a process of another session: the main process, a judge, another reference.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    reached = []
    for pid in range(2, 5000):
        try:
            os.kill(pid, 0)
            if os.getsid(pid) != os.getsid(0):
                reached.append(pid)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
