# Copies a file descriptor out of another process.
# expect: error raised
# gap: process_memory
# needs: x86-64
import ctypes
import os

PIDFD_GETFD = 438


def run(hidden_states, weight):
    try:
        pidfd = os.pidfd_open(int("@sleeper@"))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(PIDFD_GETFD, pidfd, 1, 0) < 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    raise AssertionError("reached")
