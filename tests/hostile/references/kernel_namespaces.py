# Makes namespaces in which it would be root, and enters the namespaces of other processes.
# expect: error raised
# gap: kernel
# needs: x86-64
import ctypes
import os

UNSHARE, SETNS, CLONE3 = 272, 308, 435  # numbers of x86-64
USER, MOUNTS, NETWORK, PIDS = 0x10000000, 0x20000, 0x40000000, 0x20000000


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    done = [libc.syscall(UNSHARE, kind) for kind in (USER, USER | MOUNTS, NETWORK, PIDS)]
    for kind in ("user", "mnt", "net"):
        try:
            done.append(libc.syscall(SETNS, os.open(f"/proc/1/ns/{kind}", os.O_RDONLY), 0))
        except OSError:
            pass
    raise AssertionError(f"reached: {done}" if max(done) >= 0 else "contained")
