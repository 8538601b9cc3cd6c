# Makes a sparse file whose size is a terabyte.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    try:
        with open(os.path.join(os.environ["TMPDIR"], "sparse"), "wb") as file:
            os.truncate(file.fileno(), 1 << 40)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
