# Sends secret data in a UDP datagram.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.sendto(b"inputs", ("127.0.0.1", int("@udp@")))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
