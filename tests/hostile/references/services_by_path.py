# Connects to a service of the user through the path of its socket.
# expect: error raised
# gap: local_services
import socket


def run(hidden_states, weight):
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("@others@/socket")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
