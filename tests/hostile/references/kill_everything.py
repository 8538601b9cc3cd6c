# Kills every process that it may kill, and then reports whether there was one.
# expect: error raised
# gap: signals
# destroys: run
import os
import signal


def run(hidden_states, weight):
    try:
        os.kill(-1, signal.SIGKILL)
        os.kill(int("@sleeper@"), 0)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
