"""http_cache.py - an HTTP cache like bazel-remote, for tests: GET and PUT of /ac/HASH and /cas/HASH, kept in memory.

    http_cache.py PORT_FILE LOG_FILE [USER:PASSWORD]

If the environment variable TLS_PEM names a file, the server uses https, with the key and certificate in this file.

The server checks requests at least as strictly as bazel-remote does by default (without --disable_http_ac_validation).
Keys are 64 lower-case hex digits. A request body needs a Content-Length and must not be encoded. The name of a value
below /cas must be the SHA-256 of the value. A value below /ac must be an ActionResult (of the Remote Execution API)
that names output files, each with a relative path, hash and size. When a client puts or gets an ActionResult, each of
its files must be in /cas with the stated size. Like bazel-remote, the server adds the sender of a PUT
(execution_metadata.worker) to the ActionResult, so a GET returns other bytes than the PUT sent.

The first part of a path selects another behaviour:
  /plain      accepts anything
  /bare       omits the contents of files from ActionResults
  /held       answers a PUT only once the file LOG_FILE.release exists; the log gets a line "HELD PATH CONNECTION -"
  when such a PUT arrives
  /unhurried  takes two seconds for each PUT

Any other first part of a path is a key of the dict `lies`, and selects the function that sends a wrong answer. The log
has a line for each request: "METHOD PATH CONNECTION STATUS".
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
    """Returns the fields of a protobuf message as [(number, wire type, value)]."""
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
    """Returns the fields of a message as {number: value}. Raises Bad if a field is not in `wires`, which is {number:
    wire type}."""
    found = {}
    for number, wire, value in fields(bytes_):
        if wires.get(number) != wire:
            raise Bad(f"there is no field {number} of wire type {wire}")
        if number in found:
            raise Bad(f"field {number} occurs twice")
        found[number] = value
    return found


FILE = {1: 2, 2: 2, 4: 0, 5: 2, 7: 2}  # wire types of path, digest, is_executable, contents, node_properties
DIGEST = {1: 2, 2: 0}  # hash, size_bytes
ACTION_RESULT = {2: 2, 3: 2, 4: 0, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2, 12: 2}


def output_files(message):
    """Returns [(path, hash, size, contents)] of an ActionResult. Raises Bad if bazel-remote would not accept the
    ActionResult."""
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
            raise Bad("a text is not UTF-8") from None
        size = digest.get(2, 0)
        if not path or path.startswith("/") or not is_name(hash_) or size >= 1 << 63:
            raise Bad("an OutputFile without a relative path, a hash and a size")
        files.append((path, hash_, size, one.get(5)))
    if not files:
        raise Bad("an ActionResult without output files")
    return files


def is_name(text):
    """Returns whether the text can be a key: 64 lower-case hex digits."""
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


def whole(message):
    """Returns whether /cas has all files that the message names."""
    return all(len(kept.get("cas/" + hash_, b"")) == size for _, hash_, size, _ in output_files(message))


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*parts):
    """Builds a protobuf message from fields (number, value)."""
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
    """Returns the value below /ac/KEY, or None."""
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
                raise Bad("the name is not the SHA-256 of the value")
            if folder == "ac" and mode != "plain":
                for _, hash_, _, contents in output_files(body):
                    if contents is not None and hashlib.sha256(contents).hexdigest() != hash_:
                        raise Bad("the contents do not match their hash")
                if not whole(body):
                    raise Bad("one of its files is not in /cas")
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
    """Sends a message without its last bytes. The Content-Length is the number of bytes that are sent."""
    self.answer(200, kept["ac/" + key][:-100])


def cut(self, folder, key):
    """Closes the connection in the middle of the response's body."""
    body = kept["ac/" + key]
    self.send_response(200)
    self.send_header("Content-Length", str(len(body)))
    self.end_headers()
    self.wfile.write(body[:100])
    self.wfile.flush()
    self.close_connection = True


def garbage(self, folder, key):
    """Sends bytes that are not a message, because the wire type of the first field does not exist."""
    self.answer(200, b"\xff" + bytes(range(256)) * 12)


def garbled(self, folder, key):
    """Sends a valid message with a record in which a byte in the middle is changed."""
    value = bytearray(value_of(key))
    value[len(value) // 2] ^= 1
    self.answer(200, action_result(bytes(value)))


def short(self, folder, key):
    """Sends a valid message with half a record."""
    value = value_of(key)
    self.answer(200, action_result(value[: len(value) // 2]))


def longer(self, folder, key):
    """Sends a valid message with a record that is followed by one extra byte."""
    self.answer(200, action_result(value_of(key) + b"\0"))


def misnamed(self, folder, key):
    """Below /cas, sends a value whose SHA-256 is not the requested one."""
    if folder == "cas":
        value = bytearray(kept["cas/" + key])
        value[len(value) // 2] ^= 1
        self.answer(200, bytes(value))
    else:
        self.answer(200, action_result(value_of(key), contents=False))


def huge(self, folder, key):
    """Sends a response whose body never ends."""
    self.send_response(200)
    self.send_header("Content-Length", str(1 << 40))
    self.end_headers()
    try:
        while True:
            self.wfile.write(bytes(1 << 20))
    except OSError:
        self.close_connection = True


def slow(self, folder, key):
    """Sends a byte from time to time, for as long as the client reads."""
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
    """Sends nothing."""
    time.sleep(60)


def redirect_file(self, folder, key):
    """Redirects to a file with the right content on the client's own disk."""
    path = port_file + "." + key
    with open(path, "wb") as file:
        file.write(kept["ac/" + key])
    self.answer(302, Location="file://" + path)


def redirect(self, folder, key):
    """Redirects to another path, which has the right data."""
    self.answer(307, Location=f"http://127.0.0.1:{self.server.server_address[1]}/true/{folder}/{key}")


def swapped(self, folder, key):
    """Answers with a valid record of another verdict."""
    mine = value_of(key)
    for name in sorted(kept):
        if name.startswith("ac/") and value_of(name[3:]) != mine:
            self.answer(200, kept[name])
            return
    self.answer(404)


def same_subject(self, folder, key):
    """Sends the record of one fixed case and device, whatever the requested key is."""
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
    # The TLS handshake happens in the thread of the connection, at its first read, so that a client that stops during
    # the handshake does not block other connections.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(port_file + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
