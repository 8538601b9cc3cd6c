# Lists the user's home directory.
# expect: error raised
# gap: files
import os


def run(hidden_states, weight):
    try:
        found = os.listdir("@home@")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {found}")
