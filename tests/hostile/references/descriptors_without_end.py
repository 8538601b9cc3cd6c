# Opens files until it reaches a limit.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    opened = []
    try:
        for _ in range(20000):
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as problem:
        for one in opened:
            os.close(one)
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
