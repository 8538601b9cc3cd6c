# Writes to a file without end.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    block, size = bytes(1 << 24), 0
    try:
        with open(os.path.join(os.environ["TMPDIR"], "endless"), "wb", buffering=0) as file:
            while size < 5 << 28:
                size += file.write(block)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {size}")
