# Lowers the I/O priority of another process of the user.
# expect: error raised
# gap: signals
# needs: x86-64
import ctypes

IOPRIO_SET, PROCESS, IDLE = 251, 1, 3 << 13  # numbers of x86-64


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(IOPRIO_SET, PROCESS, int("@sleeper@"), IDLE) != 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    raise AssertionError("reached")
