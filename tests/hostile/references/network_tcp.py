# Connects to a server of this machine.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    try:
        socket.create_connection(("127.0.0.1", int("@tcp@")), 2).close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
