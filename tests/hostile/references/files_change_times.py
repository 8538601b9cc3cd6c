# Sets the timestamps of a file of the user.
# expect: error raised
# gap: attributes
import os


def run(hidden_states, weight):
    try:
        os.utime("@others@/file", (1, 1))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
