# Locks a page and then all of its memory, so that the kernel cannot swap it out.
# expect: error raised
# gap: none
import ctypes

CURRENT_AND_FUTURE, PAGE = 3, 4096


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    page = ctypes.create_string_buffer(2 * PAGE)
    if libc.mlock(page, ctypes.c_size_t(PAGE)) == 0 or libc.mlockall(CURRENT_AND_FUTURE) == 0:
        raise AssertionError("reached")
    raise AssertionError(f"contained: error {ctypes.get_errno()}")
