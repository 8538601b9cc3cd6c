# Ends every process that it may end, and then says whether a process was there.
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
