"""serve - measures how fast a warm `reftest serve` answers: python3 bench/serve.py REFTEST ROOT NAME [PYTHON].

NAME is a definition of the dataset ROOT; the cache must have its verdicts. Prints for each tool the median and the
largest time of 20 calls, and the size of an answer in bytes. Also prints the read calls, the write calls and the
processor time of the server. These figures include the server's child processes that have ended.
"""
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 20


class Server:
    def __init__(self, reftest, root, python):
        words = [reftest, "serve", "--root", root, "--device", "cpu", *(["--python", python] if python else [])]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.buffer = b""
        self.calls = 0

    def call(self, tool, arguments):
        """Returns the time of the call in milliseconds and the size of the answer in bytes."""
        self.calls += 1
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": self.calls, "method": "tools/call", "params": params}
        begin = time.perf_counter()
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        while b"\n" not in self.buffer:
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                sys.exit("the server has ended")
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        took = 1000 * (time.perf_counter() - begin)
        answer = json.loads(line)
        if "error" in answer or answer["result"].get("isError"):
            sys.exit(f"{tool}: {line.decode()[:400]}")
        return took, len(line)

    def counts(self):
        """Returns read calls, write calls, and milliseconds of processor time."""
        with open(f"/proc/{self.process.pid}/io") as file:
            io = dict(line.split(": ") for line in file.read().splitlines())
        with open(f"/proc/{self.process.pid}/stat") as file:
            times = file.read().rsplit(")", 1)[1].split()[11:15]
        return int(io["syscr"]), int(io["syscw"]), 1000 * sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def text_of(root, name):
    for folder, _, files in os.walk(os.path.join(root, "definitions")):
        if f"{name}.json" in files:
            with open(os.path.join(folder, f"{name}.json")) as file:
                return file.read()
    sys.exit(f"{root} has no definition '{name}'")


def main():
    reftest, root, name, python = (*sys.argv[1:], None)[:4]
    text = text_of(root, name)
    server = Server(reftest, root, python)
    one, given = {"names": [name]}, {"definition": text, "sizes": "small"}
    cases = {"cases": True}
    tools = {"list": {}, "list of one": one, "status of one": one, "status": {}, "status with cases": cases, "explain": one, "verify": one, "verify_text": given}
    for tool in ("verify", "verify_text"):
        print(f"first {tool}: {server.call(tool, tools[tool])[0]:.0f} ms")
    for label, arguments in tools.items():
        before, times = server.counts(), []
        for _ in range(ROUNDS):
            took, size = server.call(label.split()[0], arguments)
            times.append(took)
        reads, writes, cpu = (new - old for new, old in zip(server.counts(), before))
        print(
            f"{label:17} p50 {statistics.median(times):6.1f} max {max(times):6.1f} ms, {size} bytes, "
            f"{reads // ROUNDS} reads, {writes // ROUNDS} writes, {cpu / ROUNDS:.1f} ms of processor time"
        )
    server.process.stdin.close()
    server.process.wait()


main()
