# Fills the disk with temporary files, each smaller than the limit for one file.
# expect: error raised
# gap: disk
import os


def run(hidden_states, weight):
    try:
        for i in range(2):
            with open(os.path.join(os.environ["TMPDIR"], f"big{i}"), "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 600 << 20)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
