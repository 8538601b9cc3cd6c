# Opens another definition for writing.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        open("@root@/definitions/rmsnorm/a_right.json", "r+").close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
