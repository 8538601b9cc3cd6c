# Reads a secret file of the user.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        with open("@home@/secret") as file:
            content = file.read()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {content}")
