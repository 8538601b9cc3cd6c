# Reads the size and the timestamps of a secret file of the user.
# expect: error raised
# gap: attributes
import os


def run(hidden_states, weight):
    try:
        found = os.stat("@home@/secret")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {found.st_size} bytes")
