# Raises an exception with a message of 100 megabytes.
# expect: error raised


def run(hidden_states, weight):
    raise ValueError("\x01" * 100_000_000)
