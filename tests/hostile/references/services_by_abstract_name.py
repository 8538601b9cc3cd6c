# Connects to a service of the user through its abstract socket name.
# expect: error raised
# gap: local_services
import socket


def run(hidden_states, weight):
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("\0hostile")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
