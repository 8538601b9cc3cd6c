# Creates a file in the /tmp that all users share.
# expect: error raised
# gap: files
import os


def run(hidden_states, weight):
    try:
        if os.environ["TMPDIR"] == "/tmp":
            raise OSError("its /tmp is its own")
        open("/tmp/planted", "w").close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
