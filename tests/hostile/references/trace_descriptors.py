# Lists the open files of another process of the user.
# expect: error raised
# gap: process_memory
import os


def run(hidden_states, weight):
    try:
        found = os.listdir("/proc/@sleeper@/fd")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {found}")
