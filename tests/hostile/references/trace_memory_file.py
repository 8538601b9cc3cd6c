# Opens the memory of another process of the user through /proc.
# expect: error raised
# gap: process_memory


def run(hidden_states, weight):
    try:
        open("/proc/@sleeper@/mem", "r+b").close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
