# Reads, adds and lists keys of the kernel.
# expect: error raised
# gap: kernel
# needs: x86-64
import ctypes

ADD_KEY, KEYCTL = 248, 250  # numbers of x86-64
SESSION = -3


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    done = [
        libc.syscall(ADD_KEY, b"user", b"hostile", b"x", 1, SESSION),
        libc.syscall(KEYCTL, 0, SESSION, 0),
    ]
    raise AssertionError(f"reached: {done}" if max(done) >= 0 else "contained")
