"""channel - JSON lines over a stream socket, between the pool and the processes of runner.py and provider.py."""

import json
import re
import socket
import struct


def readable(value):
    """Replaces each NUL and each lone surrogate in a message by an escape sequence, because reftest's JSON reader
    refuses these characters. The text of an exception may contain such characters."""
    if isinstance(value, str):
        return re.sub("[\0\ud800-\udfff]", lambda found: found[0].encode("unicode_escape").decode(), value)
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    return [readable(item) for item in value] if isinstance(value, (list, tuple)) else value


class Channel:
    """Sends and receives JSON lines over a stream socket. `fds` lists the received file descriptors."""

    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)
        self.bytes = bytearray()
        self.fds = []

    def send(self, message, fd=None):
        line = json.dumps(message)
        if "\\u0000" in line or "\\ud" in line:
            line = json.dumps(readable(message))
        text = line.encode() + b"\n"
        if fd is None:
            self.socket.sendall(text)
        else:
            self.socket.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))])

    def fill(self):
        """Reads available data from the socket. Returns False if the peer has closed the socket."""
        data, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(8 * 4), socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.fds += struct.unpack("%di" % (len(content) // 4), content[: len(content) // 4 * 4])
        self.bytes += data
        return bool(data)

    def line(self):
        """Returns the next message, or None if it has not been received completely."""
        end = self.bytes.find(b"\n")
        if end < 0:
            return None
        text = bytes(self.bytes[:end])
        del self.bytes[: end + 1]
        return json.loads(text)

    def wait(self):
        """Waits for the next message and returns it, or None if the peer has closed the socket."""
        while True:
            message = self.line()
            if message is not None:
                return message
            if not self.fill():
                return None
