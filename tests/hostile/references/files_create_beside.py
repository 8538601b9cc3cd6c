# Creates a file in a folder of the user.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        open("@others@/planted", "w").close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
