# Opens the shared memory of another process by its name.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        with open("/dev/shm/hostile") as file:
            content = file.read()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {content}")
