"""redis_liar.py - a server for tests that sends wrong answers in the redis protocol: redis_liar.py MODE PORT_FILE.
The table `lies` gives the wrong answer that each mode sends."""

import os
import socket
import sys
import threading
import time

mode, port_file = sys.argv[1:]


def endless_bulk(peer):
    """Announces a string of a terabyte, and sends bytes of it for as long as the client reads."""
    peer.sendall(b"*1\r\n$1099511627776\r\n")
    while True:
        peer.sendall(bytes(1 << 20))


def endless_array(peer):
    """Announces more elements than fit into memory."""
    peer.sendall(b"*2147483647\r\n")
    while True:
        peer.sendall(b"$-1\r\n" * 10000)


def large_array(peer):
    """Sends a million elements."""
    peer.sendall(b"*1000000\r\n" + b"$-1\r\n" * 1000000)


def nested(peer):
    peer.sendall(b"*1\r\n" * 100000)


def too_many(peer):
    peer.sendall(b"*60\r\n" + b"$-1\r\n" * 60)


def too_few(peer):
    peer.sendall(b"*0\r\n")


def numbers(peer):
    peer.sendall(b"*3\r\n:1\r\n:2\r\n+OK\r\n")


def error(peer):
    peer.sendall(b"-ERR \x1b[31mred\x1b[0m and \xff\xfe" + b"x" * 5000 + b"\r\n")


def nonsense(peer):
    """Sends "?" and more bytes. No valid reply begins with "?". (A random first byte could begin a valid reply.)"""
    peer.sendall(b"?" + bytes(range(256)) * 20)


def slow(peer):
    peer.sendall(b"*3\r\n$100000\r\n")
    while True:
        peer.sendall(b"x")
        time.sleep(0.1)


def silent(peer):
    time.sleep(60)


def hangs_up(peer):
    peer.sendall(b"*3\r\n$1000\r\nabc")
    peer.close()


lies = {name.replace("_", "-"): value for name, value in list(globals().items()) if callable(value) and name[0] != "_"}


def serve(peer):
    try:
        peer.recv(1 << 16)
        lies[mode](peer)
        peer.recv(1 << 16)
        time.sleep(60)
    except OSError:
        pass


listener = socket.create_server(("127.0.0.1", 0))
with open(port_file + ".new", "w") as file:
    file.write(str(listener.getsockname()[1]))
os.rename(port_file + ".new", port_file)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
