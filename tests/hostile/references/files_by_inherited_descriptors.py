# Reads and writes through all its file descriptors, and opens files below those that are directories.
# expect: error raised
# gap: none
import os
import stat


def run(hidden_states, weight):
    reached = []
    for descriptor in range(4096):
        try:
            mode = os.fstat(descriptor).st_mode
            name = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode) and "memfd:" not in name:
            reached.append(name)
    raise AssertionError(f"reached: {reached}" if reached else "contained")
