# Attaches to reftest, to its judges and to its other processes as a debugger, by PTRACE_SEIZE and by PTRACE_ATTACH.
# expect: error raised
# gap: none
import ctypes
import os

ATTACH, DETACH, SEIZE = 16, 17, 0x4206


def is_of_a_reference(pid):
    """Returns whether another reference has started this program ("python -IS -c CODE"), or it has ended. reftest
    starts no program with these arguments."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[1:3] == [b"-IS", b"-c"]
    except OSError:
        return True


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    known = {int("@sleeper@"), int("@victim@"), int("@stopped@"), int("@sharer@"), 1}
    reached = []
    for pid in set(range(1, 5000)) - known - {os.getpid()}:
        if is_of_a_reference(pid):
            continue
        for order in (SEIZE, ATTACH):
            if libc.ptrace(order, pid, None, None) == 0:
                reached.append(pid)
                libc.ptrace(DETACH, pid, None, None)
    raise AssertionError(f"reached: {reached}" if reached else "contained")
