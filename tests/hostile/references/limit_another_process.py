# Lowers a resource limit of another process.
# expect: error raised
# gap: kernel
import resource


def run(hidden_states, weight):
    try:
        resource.prlimit(int("@sleeper@"), resource.RLIMIT_NOFILE, (3, 3))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
