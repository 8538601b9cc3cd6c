#!/bin/sh
# While a watcher follows edits, sixty-four concurrent processes use one cache for verify, import, export, gc and check,
# and some of them are killed. All processes terminate, none reports a wrong status, and in the end every verdict is
# stored and correct.
. "$(dirname "$0")/../harness.sh"
interpreter=$build/tests/faults/interpreter # a program that imitates Python and torch within a millisecond
[ -x "$interpreter" ] || fail "there is no $interpreter: make unit-tests builds it"
mkdir "$work/torch"
printf "__version__ = '9.9.9'\ncuda = None\n" >"$work/torch/version.py"
export REFTEST_FAKE_TORCH="$work/torch" REFTEST_PYTHON="$interpreter"
cat >"$work/world.py" <<'P'
import json, os
WORDS = {"PRODUCT": "passed", "SEVENS": "failed", "RAISES": "error"}
NAMES = ["norm_%d" % i for i in range(24)]
EDITED = NAMES[:6]  # the definitions that change during the test

def word_of(name, turn=0):
    return list(WORDS)[(int(name[5:]) + turn) % 3]

def define(root, name, turn=0):
    tensor = lambda *axes: {"shape": list(axes), "dtype": "float32"}
    path = os.path.join(root, "definitions", "gemm", name + ".json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as out:
        json.dump({"name": name, "op_type": "gemm", "description": "C = A B^T.",
                   "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}, "K": {"type": "const", "value": 8}},
                   "inputs": {"A": tensor("M", "K"), "B": tensor("N", "K")}, "outputs": {"C": tensor("M", "N")},
                   "reference": "import torch\n\n\ndef run(A, B):\n    return '%s', %d\n" % (word_of(name, turn), turn)}, out)
    os.rename(path + ".new", path)
P
"$python" -I -S -c '
import sys
sys.path.insert(0, sys.argv[1])
import world
for root in (".", sys.argv[1] + "/other"):
    for name in world.NAMES:
        world.define(root, name)' "$work"
options="--format json --device cpu --sizes small --jobs 1"
# shellcheck disable=SC2086 # words
"$reftest" --root "$work/other" verify $options >"$work/out" 2>"$work/err" && fail "the wrong references passed"
"$reftest" --root "$work/other" cache export "$work/archive" >/dev/null || fail "the export failed"

watch
"$python" -I -S - "$work" "$reftest" <<'P' >"$work/soak" 2>&1 || fail "$(tail -n 3 "$work/soak")"
import collections, json, random, signal, subprocess, sys, threading, time
work, reftest = sys.argv[1:]
sys.path.insert(0, work)
import world

chance = random.Random(9280)
OPTIONS = ["--format", "json", "--device", "cpu", "--sizes", "small", "--jobs", "1"]
KINDS = (
    [("verify", ["verify", *OPTIONS], (1,))] * 16 + [("force", ["verify", "--force", *OPTIONS], (1,))] * 12
    + [("changed", ["verify", "--changed", *OPTIONS], (0, 1, 3))] * 8 + [("killed", ["verify", "--force", *OPTIONS], (1, -9))] * 8
    + [("import", ["cache", "import", work + "/archive"], (0,))] * 8
    + [("export", ["cache", "export", work + "/exported%d"], (0,))] * 4
    + [("gc", ["cache", "gc", "--days", "0"], (0,))] * 4 + [("check", ["cache", "check"], (0,))] * 4)
assert len(KINDS) == 64
chance.shuffle(KINDS)
LIMIT, wrong, counts = 240, [], collections.Counter()

def look(kind, process, codes, out):
    counts[kind] += 1
    if process.returncode not in codes:
        wrong.append("%s ended with %d: %s" % (kind, process.returncode, out[1][-500:]))
    if "set aside" in out[1] or "not stored" in out[1]:
        wrong.append("%s said: %s" % (kind, out[1][-500:]))
    if kind in ("verify", "force") and process.returncode == 1:
        for one in json.loads(out[0])["definitions"]:
            right = world.WORDS[world.word_of(one["name"])]
            if one["name"] not in world.EDITED and one["status"] != right:
                wrong.append("%s says %s of %s, which is %s" % (kind, one["status"], one["name"], right))

def wait(kind, process, codes):
    if kind == "killed":
        time.sleep(chance.random())
        process.send_signal(signal.SIGKILL)
    try:
        look(kind, process, codes, process.communicate(timeout=LIMIT))
    except subprocess.TimeoutExpired:
        process.kill()
        wrong.append("%s does not come to an end" % kind)

threads = []
for number, (kind, words, codes) in enumerate(KINDS):
    process = subprocess.Popen([reftest, *(word.replace("%d", str(number)) for word in words)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    threads.append(threading.Thread(target=wait, args=(kind, process, codes)))
    threads[-1].start()
for turn in range(1, 5):  # the last edit changes the status of each edited definition
    for name in world.EDITED:
        world.define(".", name, turn)
        time.sleep(0.02)
for thread in threads:
    thread.join()
print(dict(counts))
sys.exit("\n".join(wrong[:5]) if wrong or sum(counts.values()) != 64 else 0)
P
expectations=$((expectations + 64))
wrong_statuses() { # wrong_statuses TURN: expects the right status of each definition after the edit TURN
	"$python" -I -S -c '
import json, sys
sys.path.insert(0, sys.argv[1])
import world
found = {one["name"]: one["status"] for one in json.load(open(sys.argv[1] + "/out"))["definitions"]}
right = {name: world.WORDS[world.word_of(name, int(sys.argv[2]) if name in world.EDITED else 0)] for name in world.NAMES}
wrong = {name: found.get(name) for name in right if found.get(name) != right[name]}
sys.exit("%s" % wrong if wrong else 0)' "$work" "$1" 2>"$work/python" || fail "$step: wrong or missing: $(cat "$work/python")"
	expectations=$((expectations + 24))
}
# Waits until the watcher has reported a verdict for the final text of each edited definition.
cp "$work/out" "$work/events.all"
edited='{"norm_%d" % i: ["passed", "failed", "error"][(i + 4) % 3] for i in range(6)}'
"$python" -I -S -c '
import json, sys, time
right, end = eval(sys.argv[2]), time.monotonic() + 120
while True:
    last = {}
    for line in open(sys.argv[1]):
        event = json.loads(line) if line.endswith("\n") else {}
        if event.get("event") == "verdict":
            last[event["name"]] = event["status"]
    if all(last.get(name) == right[name] for name in right):
        break
    if time.monotonic() > end:
        sys.exit("the watcher reported %s" % last)
    time.sleep(0.05)' "$work/out" "$edited" 2>"$work/python" || fail "$(cat "$work/python")"
end_watch
# shellcheck disable=SC2086
run verify --cached-only $options
expect_exit 1
expect_ran 0
wrong_statuses 4
run cache check
expect_exit 0
expect_says '0 damaged'
run cache export "$work/last"
expect_exit 0
[ ! -e .reftest/cache.aside-1 ] || fail "the cache was renamed"
[ -z "$(find . -name '*.tmp' -o -name 'cache.compact')" ] || fail "temporary files are left: $(find . -name '*.tmp' -o -name 'cache.compact')"
