# Raises its limit for the size of core dumps, and ends with a core dump.
# expect: error crashed
import ctypes
import os
import resource


def run(hidden_states, weight):
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
    os.chdir(os.environ["TMPDIR"])
    os.abort()
