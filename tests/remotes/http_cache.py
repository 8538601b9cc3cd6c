"""An HTTP cache as bazel-remote is one, for scenes: GET and PUT of /ac/HASH and /cas/HASH, kept in memory.

    http_cache.py PORT_FILE LOG_FILE [USER:PASSWORD]      with TLS_PEM set: https, by the key and certificate in that file

It holds what it is given to what such a server holds it to unless it is told not to (--disable_http_ac_validation), and
to more: names are 64 lower-case hex digits; a body has its length and no encoding; below /cas a value must have the
SHA-256 that it is put under; below /ac it must be an ActionResult (of the Remote Execution API) that names output
files, each by a relative path, hash and size, and every one of them must be in /cas in that size, when it is put and
when it is asked for. What is asked for then is not what was put: like such a server it has written down who put it
(execution_metadata.worker). Below /plain it is a server that takes anything, below /bare one that leaves contents out
of ActionResults, below /held one that takes a PUT and answers it only once there is a file LOG_FILE.release (the log
has a line "HELD PATH CONNECTION -" when one has come), below /unhurried one that takes two seconds for each PUT.

The other first parts of a path are how a server may lie about what it has: see `lies`. The log has a line for each request:
"METHOD PATH CONNECTION STATUS".
"""

import base64
import hashlib
import http.server
import os
import ssl
import sys
import threading
import time

port_file, log_file = sys.argv[1:3]
password = base64.b64encode(sys.argv[3].encode()).decode() if len(sys.argv) > 3 else None
kept = {}  # "ac/HASH", "cas/HASH" -> bytes
lock = threading.Lock()


class Bad(Exception):
    pass


def fields(message):
    """The fields of a protobuf message: [(number, wire type, value)]."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(message) or shift > 63:
                raise Bad("a number is cut")
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise Bad("no field has number 0")
        if wire == 0:
            value = varint()
        elif wire == 2:
            length = varint()
            if at + length > len(message):
                raise Bad("bytes are cut")
            value = message[at : at + length]
            at += length
        else:
            raise Bad(f"wire type {wire}")
        found.append((number, wire, value))
    return found


def message_of(bytes_, wires):
    """{number: value} of a message all of whose fields are among these, {number: wire type}."""
    found = {}
    for number, wire, value in fields(bytes_):
        if wires.get(number) != wire:
            raise Bad(f"there is no field {number} of wire type {wire}")
        if number in found:
            raise Bad(f"field {number} stands there twice")
        found[number] = value
    return found


FILE = {1: 2, 2: 2, 4: 0, 5: 2, 7: 2}  # path, digest, is_executable, contents, node_properties
DIGEST = {1: 2, 2: 0}  # hash, size_bytes
ACTION_RESULT = {2: 2, 3: 2, 4: 0, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 12: 2}


def output_files(message):
    """[(path, hash, size, contents)] of an ActionResult; Bad if it is none that a server takes."""
    files = []
    for number, wire, value in fields(message):
        if ACTION_RESULT.get(number) != wire:
            raise Bad(f"an ActionResult has no field {number} of wire type {wire}")
        if number != 2:
            continue
        one = message_of(value, FILE)
        if 2 not in one:
            raise Bad("an OutputFile without a Digest")
        digest = message_of(one[2], DIGEST)
        try:
            path, hash_ = one.get(1, b"").decode(), digest.get(1, b"").decode()
        except UnicodeDecodeError:
            raise Bad("a text is no UTF-8") from None
        size = digest.get(2, 0)
        if not path or path.startswith("/") or not is_name(hash_) or size >= 1 << 63:
            raise Bad("an OutputFile without a relative path, a hash and a size")
        files.append((path, hash_, size, one.get(5)))
    if not files:
        raise Bad("an ActionResult without output files")
    return files


def is_name(text):
    """Of what is kept: a SHA-256, or what takes its place below /ac."""
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def whole(message):
    """Are all files that it names in /cas?"""
    return all(len(kept.get("cas/" + hash_, b"")) == size for _, hash_, size, _ in output_files(message))


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*parts):
    """A protobuf message of fields (number, value)."""
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def action_result(value, contents=True, hash_=None):
    digest = message((1, hash_ or hashlib.sha256(value).hexdigest()), (2, len(value)))
    return message((2, message((1, "verdict"), (2, digest), *([(5, value)] if contents else []))))


def value_of(key):
    """The value that lies below /ac/KEY, or None."""
    if "ac/" + key not in kept:
        return None
    return kept["cas/" + output_files(kept["ac/" + key])[0][1]]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *words):
        pass

    def note(self, word, status):
        with lock, open(log_file, "a") as log:
            log.write(f"{word} {self.path} {self.client_address[1]} {status}\n")

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        self.note(self.command, status)

    def parts(self):
        parts = self.path.strip("/").split("/")
        if len(parts) != 3 or parts[1] not in ("ac", "cas") or not is_name(parts[2]):
            self.answer(400)
            return None
        if password and self.headers.get("Authorization") != "Basic " + password:
            self.answer(401)
            return None
        return parts

    def do_PUT(self):
        if not (self.headers["Content-Length"] or "").isdigit() or "Content-Encoding" in self.headers:
            self.answer(400)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        parts = self.parts()
        if parts is None:
            return
        mode, folder, key = parts
        if mode == "held":
            self.note("HELD", "-")
            while not os.path.exists(log_file + ".release"):
                time.sleep(0.02)
        if mode == "unhurried":
            time.sleep(2)
        try:
            if mode == "talkative":
                huge(self, folder, key)
                return
            if mode == "full":
                self.answer(507)
                return
            if folder == "cas" and mode != "plain" and hashlib.sha256(body).hexdigest() != key:
                raise Bad("that is not its SHA-256")
            if folder == "ac" and mode != "plain":
                for _, hash_, _, contents in output_files(body):
                    if contents is not None and hashlib.sha256(contents).hexdigest() != hash_:
                        raise Bad("contents are not what their hash says")
                if not whole(body):
                    raise Bad("a file of it is not in /cas")
                body += message((9, message((1, "%s:%d" % self.client_address))))
        except Bad as bad:
            self.answer(400, str(bad).encode())
            return
        with lock:
            kept[folder + "/" + key] = body
        self.answer(200)

    def do_GET(self):
        parts = self.parts()
        if parts is None:
            return
        mode, folder, key = parts
        if mode in lies:
            lies[mode](self, folder, key)
            return
        body = kept.get(folder + "/" + key)
        if body is not None and folder == "ac" and mode == "bare":
            body = action_result(value_of(key), contents=False)
        if body is None or (folder == "ac" and not whole(body)):
            self.answer(404)
        else:
            self.answer(200, body)


def truncated(self, folder, key):
    """The message breaks off, and the length says so."""
    self.answer(200, kept["ac/" + key][:-100])


def cut(self, folder, key):
    """The connection breaks off in the middle of the body."""
    body = kept["ac/" + key]
    self.send_response(200)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body[:100])
    self.wfile.flush()
    self.close_connection = True


def garbage(self, folder, key):
    self.answer(200, os.urandom(3000))


def garbled(self, folder, key):
    """A true message around a record with a changed byte in the middle."""
    value = bytearray(value_of(key))
    value[len(value) // 2] ^= 1
    self.answer(200, action_result(bytes(value)))


def short(self, folder, key):
    """A true message around half a record."""
    value = value_of(key)
    self.answer(200, action_result(value[: len(value) // 2]))


def longer(self, folder, key):
    """A true message around a record and something behind it."""
    self.answer(200, action_result(value_of(key) + b"\0"))


def misnamed(self, folder, key):
    """The value is not what its digest says: it is below /cas."""
    if folder == "cas":
        value = bytearray(kept["cas/" + key])
        value[len(value) // 2] ^= 1
        self.answer(200, bytes(value))
    else:
        self.answer(200, action_result(value_of(key), contents=False))


def huge(self, folder, key):
    """A body without an end."""
    self.send_response(200)
    self.send_header("Content-Length", str(1 << 40))
    self.end_headers()
    try:
        while True:
            self.wfile.write(bytes(1 << 20))
    except OSError:
        self.close_connection = True


def slow(self, folder, key):
    """A byte now and then, as long as anybody listens."""
    try:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        while True:
            self.wfile.write(b"\x12")
            self.wfile.flush()
            time.sleep(0.1)
    except OSError:
        self.close_connection = True


def silent(self, folder, key):
    """Nothing at all."""
    time.sleep(60)


def redirect_file(self, folder, key):
    """To a file on the asker's own disk that would do."""
    path = port_file + "." + key
    with open(path, "wb") as file:
        file.write(kept["ac/" + key])
    self.answer(302, Location="file://" + path)


def redirect(self, folder, key):
    """To where the truth is."""
    self.answer(307, Location=f"http://127.0.0.1:{self.server.server_address[1]}/true/{folder}/{key}")


def swapped(self, folder, key):
    """A true record of something else."""
    mine = value_of(key)
    for name in sorted(kept):
        if name.startswith("ac/") and value_of(name[3:]) != mine:
            self.answer(200, kept[name])
            return
    self.answer(404)


def same_subject(self, folder, key):
    """What lies here is asked for elsewhere: the records of each subject, one after the other."""
    values = sorted({value_of(name[3:]) for name in kept if name.startswith("ac/")})
    ones = [value for value in values if b"small:batch_size=1" in value]
    self.answer(200, action_result(ones[0]))


def broken(self, folder, key):
    self.answer(503)


lies = {
    "truncated": truncated, "cut": cut, "garbage": garbage, "garbled": garbled, "short": short, "longer": longer,
    "misnamed": misnamed, "huge": huge, "slow": slow, "silent": silent, "redirect-file": redirect_file,
    "redirect": redirect, "swapped": swapped, "same-subject": same_subject, "broken": broken,
}  # fmt: skip


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, address):
        pass


server = Server(("127.0.0.1", 0), Handler)
if os.environ.get("TLS_PEM"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["TLS_PEM"])
    # Greeted by the thread of its connection, at the first read: who hangs there holds up nobody else.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(port_file + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
