# Watches the user's home directory for changes.
# expect: error raised
# gap: files
import ctypes

EVERYTHING = 0xFFF


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.inotify_add_watch(libc.inotify_init(), b"@home@", EVERYTHING) < 0:
        raise AssertionError(f"contained: error {ctypes.get_errno()}")
    raise AssertionError("reached")
