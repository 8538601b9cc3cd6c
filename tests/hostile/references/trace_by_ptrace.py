# Attaches to another process of the user as a debugger.
# expect: error raised
# gap: process_memory
import ctypes

ATTACH, DETACH = 16, 17


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(ATTACH, int("@sleeper@"), None, None) != 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    libc.ptrace(DETACH, int("@sleeper@"), None, None)
    raise AssertionError("reached")
