# Makes a secret file of the user readable for everybody.
# expect: error raised
# gap: attributes
import os


def run(hidden_states, weight):
    try:
        os.chmod("@others@/file", 0o666)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
