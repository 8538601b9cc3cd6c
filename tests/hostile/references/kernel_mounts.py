# Mounts and unmounts file systems.
# expect: error raised
# gap: kernel
# needs: x86-64
import ctypes
import os

UMOUNT2, FSOPEN, OPEN_TREE = 166, 430, 428


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    place = os.fsencode(os.environ["TMPDIR"])
    done = [
        libc.mount(b"none", place, b"tmpfs", 0, None),
        libc.mount(b"/", place, None, 4096, None),
        libc.syscall(UMOUNT2, b"/proc", 2),
        libc.syscall(FSOPEN, b"tmpfs", 0),
        libc.syscall(OPEN_TREE, -100, b"/usr", 1),
    ]
    raise AssertionError(f"reached: {done}" if max(done) >= 0 else "contained")
