# Makes a POSIX message queue.
# expect: error raised
# gap: ipc
# needs: x86-64
import ctypes
import os

MQ_OPEN = 240  # the number of x86-64


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(MQ_OPEN, b"hostile", os.O_CREAT | os.O_RDWR, 0o600, None) < 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    raise AssertionError("reached")
