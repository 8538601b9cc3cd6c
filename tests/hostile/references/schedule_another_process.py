# Gives another process of the user an idle scheduling policy, so that it runs only when nothing else does.
# expect: error raised
# gap: signals
import os


def run(hidden_states, weight):
    try:
        os.sched_setscheduler(int("@sleeper@"), os.SCHED_IDLE, os.sched_param(0))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
