# Finds System V shared memory, semaphores and message queues of other processes by their keys and ids, and makes new
# ones.
# expect: error raised
# gap: ipc
# needs: x86-64
import ctypes

SHMGET, SEMGET, MSGGET = 29, 64, 68  # numbers of x86-64
CREATE = 0o1666


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    calls = [
        (SHMGET, 1234, 4096, 0),
        (SHMGET, 4321, 4096, CREATE),
        (SEMGET, 4321, 1, CREATE),
        (MSGGET, 4321, CREATE),
    ]
    done = [libc.syscall(*call) for call in calls]
    raise AssertionError(f"reached: {done}" if max(done) >= 0 else "contained")
