# Listens on a port of the network.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    try:
        socket.create_server(("0.0.0.0", 0)).close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
