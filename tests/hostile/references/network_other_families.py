# Opens sockets of address families that few programs use.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    reached = []
    for family in range(3, 46):
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
            reached.append(family)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
