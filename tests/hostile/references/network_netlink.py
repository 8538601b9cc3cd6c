# Asks the kernel for the network's interfaces and routes.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
