# Gives another process of the user the lowest priority.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    try:
        os.setpriority(os.PRIO_PROCESS, int("@sleeper@"), 19)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
