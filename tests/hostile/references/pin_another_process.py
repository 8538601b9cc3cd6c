# Restricts another process of the user to one processor.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    try:
        os.sched_setaffinity(int("@sleeper@"), {min(os.sched_getaffinity(0))})
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
