# Removes and renames files of the user.
# expect: error raised
# gap: files
import os


def run(hidden_states, weight):
    try:
        os.rename("@others@/file", "@others@/renamed")
        os.rename("@others@/renamed", "@others@/file")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
