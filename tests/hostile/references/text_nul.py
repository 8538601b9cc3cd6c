# Raises an exception with NUL in its message and in the name of its class.
# expect: error raised


def run(hidden_states, weight):
    raise type("Nul\0Error", (Exception,), {})("before\0after")
