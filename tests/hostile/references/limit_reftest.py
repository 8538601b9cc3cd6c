# Lowers the resource limits of reftest and of its judges, for processor time (to nothing) and for memory.
# expect: error raised
# gap: kernel
# destroys: run
import os
import resource


def run(hidden_states, weight):
    reached = []
    for pid in range(1, 5000):
        for limit in (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE):
            try:
                if pid != os.getpid():
                    resource.prlimit(pid, limit, (0, 0))
                    reached.append(pid)
            except OSError:
                pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
