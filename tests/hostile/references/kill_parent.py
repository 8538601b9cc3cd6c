# Asks the kernel whether it may kill the process that started it.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    try:
        os.kill(os.getppid() or 1 << 22, 0)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
