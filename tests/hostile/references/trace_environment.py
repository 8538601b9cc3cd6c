# Reads the environment of another process of the user.
# expect: error raised
# gap: process_memory


def run(hidden_states, weight):
    try:
        with open("/proc/@sleeper@/environ", "rb") as file:
            content = file.read()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {content[-60:]}")
