# Fills memfds, which are files in memory without a name.
# expect: error raised | error memory_limit
# gap: memory
# contained: error memory_limit
import os

SIZE, FILES = 320 << 20, 4  # together, this is more memory than a reference may use (1 GiB)


def run(hidden_states, weight):
    try:
        files = [os.memfd_create("hostile") for _ in range(FILES)]
        for fd in files:
            for _ in range(SIZE >> 20):
                os.write(fd, b"x" * (1 << 20))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
