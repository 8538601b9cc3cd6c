# Asks a DNS server for the address of a name that contains secret data.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.connect(("::1", 53))
            one.send(b"\0\0\1\0\0\1\0\0\0\0\0\0\6inputs\7invalid\0\0\1\0\1")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
