# Writes an extended attribute of a file of the user.
# expect: error raised
# gap: attributes
import os


def run(hidden_states, weight):
    try:
        os.setxattr("@root@/definitions/rmsnorm/a_right.json", "user.hostile", b"1")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
