# Calls interfaces of the kernel that often had security faults: bpf, perf events, userfaultfd, io_uring, file handles.
# expect: error raised
# gap: kernel
# needs: x86-64
import ctypes

CALLS = {
    "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "memfd_secret": 447,
    "name_to_handle_at": 303, "fanotify_init": 300, "personality": 135, "modify_ldt": 154,
}  # fmt: skip
REFUSED, MISSING = 1, 38


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    reached = []
    for name, number in CALLS.items():
        if libc.syscall(number, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() not in (REFUSED, MISSING):
            reached.append(name)
    raise AssertionError(f"reached: {reached}" if reached else "contained")
