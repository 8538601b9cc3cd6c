# Reads the reference of another definition.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        open("@root@/definitions/rmsnorm/a_right.json").read()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
