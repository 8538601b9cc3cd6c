# Kills the main process of reftest, which it finds by its name or by trying all pids.
# expect: error raised
# gap: signals
# destroys: run
import os
import signal

OWN_NAMESPACE = os.getppid() == 0


def run(hidden_states, weight):
    own = {int(number) for number in os.listdir("/proc/self/task")}
    reached = []
    for pid in range(2, 5000):
        try:
            if pid not in own and not OWN_NAMESPACE:
                os.kill(pid, signal.SIGINT)
                reached.append(pid)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
