# Makes system calls with the numbers of another architecture, which a filter of system calls may not know.
# expect: error raised
# gap: kernel
# needs: x86-64
import ctypes

X32, GETPID, SOCKET = 1 << 30, 39, 41


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    done = [libc.syscall(X32 + GETPID), libc.syscall(X32 + SOCKET, 2, 1, 0)]
    raise AssertionError(f"reached: {done}" if max(done) >= 0 else "contained")
