# Locks its memory, so that the kernel can move none of it to disk.
# expect: error raised
# gap: none
import ctypes

CURRENT_AND_FUTURE = 3


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(CURRENT_AND_FUTURE) != 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    raise AssertionError("reached")
