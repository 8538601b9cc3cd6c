# Opens raw sockets, with which it could read the packets of other processes.
# expect: error raised
# gap: network
import socket


def run(hidden_states, weight):
    reached, problems = [], []
    for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 3)):
        try:
            socket.socket(family, kind, protocol).close()
            reached.append(family.name)
        except OSError as problem:
            problems.append(str(problem))
    raise AssertionError(f"reached: {reached}" if reached else f"contained: {problems}")
