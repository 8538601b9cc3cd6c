# Stops a process of the same user.
# expect: error raised
# gap: signals
import os
import signal


def run(hidden_states, weight):
    try:
        os.kill(int("@stopped@"), signal.SIGSTOP)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
