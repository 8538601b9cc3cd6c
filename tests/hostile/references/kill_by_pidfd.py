# Opens a pidfd for another process of the same user, and kills that process through it.
# expect: error raised
# gap: signals
import os
import signal


def run(hidden_states, weight):
    try:
        signal.pidfd_send_signal(os.pidfd_open(int("@victim@")), signal.SIGKILL)
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
