# Gives all processes of the user the lowest priority.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    try:
        os.setpriority(os.PRIO_USER, os.getuid(), 19)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    try:
        found = os.getpriority(os.PRIO_PROCESS, int("@sleeper@"))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached" if found == 19 else "contained")
