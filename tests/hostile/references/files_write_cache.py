# Opens the cache of verdicts for writing.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    try:
        open("@root@/.reftest/cache/data.mdb", "r+").close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
