#!/bin/sh
# own interpreter: the test checks which files a reference can open, so it shares no interpreter with other tests.
# `reftest serve` answers a client that only writes and reads lines. After an invalid message, the server continues. A
# client can cancel a request. The server's answers equal the output of the `reftest` commands. If a request contains a
# definition as text, the server writes nothing to the dataset. The server reads reftest.toml again for each request.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the CPU suffices"
given tiny_norm
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
step='the client'
cat >"$work/client.py" <<'P'
import json, os, signal, subprocess, sys

reftest, root, python, restrict = sys.argv[1:]
server = subprocess.Popen([reftest, "serve", "--root", root, "--device", "cpu", "--jobs", "1", "--python", python],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
last = 0

def send(message):
    server.stdin.write((message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")
    server.stdin.flush()

def take():
    line = server.stdout.readline()
    assert line, "the server has ended"
    return json.loads(line)

def request(method, **params):
    global last
    last += 1
    send({"jsonrpc": "2.0", "id": last, "method": method, "params": params})
    return last

def call(tool, **arguments):
    return request("tools/call", name=tool, arguments=arguments)

def answer(number):
    got = take()
    assert got["id"] == number, got
    return got

def text(number):
    result = answer(number)["result"]
    return result["content"][0]["text"], result["isError"]

def code(expected, number=None):
    got = take()
    assert got["id"] == number and got["error"]["code"] == expected, got
    return got["error"]["message"]

def cli(*words):
    return subprocess.run([reftest, *words, "--root", root], stdout=subprocess.PIPE).stdout.decode()

# For a wrong message, the server returns an error and continues.
send("{")
code(-32700)
send("[]")
code(-32600)
send('{"jsonrpc": "2.0", "id": "x", "method": 1}')
code(-32600, "x")
send("\x00\xff")
code(-32700)
send('"' + "x" * (5 << 20) + '"')
assert "4 MiB" in code(-32600)
send("")
send({"jsonrpc": "2.0", "method": "notifications/unheard_of"})
send({"jsonrpc": "2.0", "id": 1, "result": {}})
number = request("resources/list")
assert "resources/list" in code(-32601, number)
number = call("shell", command="ls")
assert "unknown tool" in code(-32602, number)
number = call("status", name="x")
assert "did you mean" in code(-32602, number)
assert answer(request("ping"))["result"] == {}
for asked, version in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
    assert answer(request("initialize", protocolVersion=asked))["result"]["protocolVersion"] == version

# The server verifies a definition that is given as text, and writes nothing.
right = open(root + "/definitions/rmsnorm/tiny_norm.json").read()
assert right.count("weight") > 1
definition = json.loads(right)
definition["reference"] = definition["reference"].replace("return ", "return 1.01 * ")
report = json.loads(text(call("verify_text", definition=right, sizes="small"))[0])
assert report["definitions"][0]["status"] == "passed" and report["definitions"][0]["cases"][0]["containment"], report
assert not report["definitions"][0]["cases"][0]["kept"], report
report = json.loads(text(call("verify_text", definition=json.dumps(definition), sizes="small"))[0])
assert report["definitions"][0]["status"] == "failed" and report["summary"]["exit"] == 1, report["summary"]
definition["reference"] = "import torch\n\ndef run(**inputs):\n    open('" + root + "/written', 'w')\n"
report = json.loads(text(call("verify_text", definition=json.dumps(definition), sizes="small"))[0])
assert "written" in report["definitions"][0]["cases"][0]["message"], report # open failed
sentence, wrong = text(call("verify_text", definition="{}"))
assert wrong and '"name"' in sentence, sentence
sentence, wrong = text(call("verify_text", definition=json.dumps({**definition, "name": "../x"})))
assert wrong and "slash" in sentence, sentence
found = [os.path.join(at, name) for at, _, names in os.walk(root) for name in names]
assert all("/definitions/" in path or "/workloads/" in path for path in found), found

# The server's answers equal the output of the `reftest` commands.
report = json.loads(text(call("verify", names=["tiny_norm"], sizes="small"))[0])
assert report["summary"]["passed"] == 1 and report["summary"]["cases_run"] > 0, report["summary"]
report = json.loads(text(call("verify", names=["rmsnorm/*"], sizes="small"))[0])
assert report["summary"]["cases_run"] == 0, report["summary"]
assert text(call("list")) == (cli("list", "--format", "json"), False)
assert text(call("explain", names=["tiny_norm"])) == (cli("explain", "tiny_norm", "--alone", "--device", "cpu"), False)
status = json.loads(text(call("status", names=["tiny_norm"]))[0])
known = status["definitions"][0]
assert known["name"] == "tiny_norm" and "cases" not in known, status
status = json.loads(text(call("status", cases=True))[0])["definitions"][0]
assert status["counts"] == known["counts"] and len(status["cases"]) == known["counts"]["cases"] > known["counts"]["passed"] > 0, status
assert status["cases"][0]["outputs"] and status["constants"], status
sentence, wrong = text(call("explain", names=["--help"])) # an operand and no option
assert wrong and "no definition '--help'" in sentence, sentence
sentence, wrong = text(call("verify", names=["nothing"]))
assert wrong and "no definition 'nothing'" in sentence, sentence

# If a definition that is given as text fails, this does not affect the definition of the same name in the dataset.
broken = {**json.loads(right), "reference": json.loads(right)["reference"].replace("return ", "return 1.01 * ")}
assert json.loads(text(call("verify_text", definition=json.dumps(broken), sizes="small"))[0])["summary"]["failed"] == 1
again = subprocess.run([reftest, "verify", "--last-failed", "--alone", "--device", "cpu", "--root", root], capture_output=True)
assert b"no definition failed in its last run" in again.stderr, again.stderr

# A request runs until it is cancelled. Meanwhile the server answers other requests. After the cancellation, it verifies
# the next definition.
definition["reference"] = "import torch\n\ndef run(**inputs):\n    while True:\n        pass\n"
endless = call("verify_text", definition=json.dumps(definition), sizes="small")
assert answer(request("ping"))["result"] == {}
assert text(call("list"))[0] == cli("list", "--format", "json")
waiting = [call("verify_text", definition=right, sizes="small") for _ in range(63)]
assert "64 requests" in code(-32000, call("list"))
for number in waiting[1:]:
    send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
send({"jsonrpc": "2.0", "id": waiting[0], "method": "tools/call", "params": {"name": "list"}})
assert "this id" in code(-32600, waiting[0])
send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 10 ** 6}})
send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": endless}})
assert json.loads(text(waiting[0])[0])["definitions"][0]["status"] == "passed"

# Requests that came before the end of the input are answered.
number = call("status", names=["tiny_norm"])
server.stdin.close()
assert json.loads(text(number)[0])["definitions"][0]["name"] == "tiny_norm"
assert server.stdout.read() == b"" and server.wait() == 0

# The server reads reftest.toml for each request. A changed setting also takes effect in the processes that the server
# has already started.
server = subprocess.Popen([restrict, "--no-namespaces", "--no-landlock", reftest, "serve", "--root", root, "--device", "cpu"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for required, passed in ((None, 1), ("full", 0), ("full", 0), (None, 1)):
    if required:
        open(root + "/reftest.toml", "w").write('require-containment = "full"\n')
    elif os.path.exists(root + "/reftest.toml"):
        os.remove(root + "/reftest.toml")
    content, wrong = text(call("verify", names=["tiny_norm"], sizes="small", force=True))
    assert (0 if wrong else json.loads(content)["summary"]["passed"]) == passed, (required, content)
server.stdin.close()
assert server.wait() == 0

# A signal ends the server, also while a reference runs.
server = subprocess.Popen([reftest, "serve", "--root", root, "--device", "cpu"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert answer(request("ping"))["result"] == {}
call("verify_text", definition=json.dumps(definition), sizes="small")
assert answer(request("ping"))["result"] == {}
server.send_signal(signal.SIGTERM)
assert server.wait() == 130
P
timeout 400 "$python" -I -S "$work/client.py" "$reftest" "$root" "$python" "$work/restrict" >"$work/out" 2>"$work/err" && status=0 || status=$?
expectations=$((expectations + 1))
expect_exit 0
# If its arguments or settings are wrong, `reftest serve` ends before it answers a request.
run serve --root "$work/nothing"
expect_exit 2
run serve rmsnorm
expect_exit 2
echo 'szes = "small"' >reftest.toml
run serve
expect_exit 2
expect_says 'did you mean "sizes"?'
