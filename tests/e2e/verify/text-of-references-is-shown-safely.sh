#!/bin/sh
# Text of a reference, a definition, a workload or a file name is escaped wherever it could do harm: in a terminal, a
# log of a CI system, JSON, XML or a generated file. An exception whose message must be escaped is still reported as an
# exception.
. "$(dirname "$0")/../harness.sh"
mkdir -p "$work/shown"

# `keep NAME`: keeps the output of the last command for the check at the end.
keep() {
	cat "$work/out" >"$work/shown/$1.out"
	cat "$work/err" >"$work/shown/$1.err"
}

define hostile <<'PYTHON'
EVIL = "\x1b[2J\x9b31m\u202e\u200b\u2028\x07\r\n::set-output name=a::b\n  ::error::injected\n##[error]x ##vso[task]y\n"


def run(hidden_states, weight):
    print(EVIL)
    raise ValueError("before\0\ud800" + EVIL + "after")
PYTHON
define wrong <<'PYTHON'
import torch


def run(hidden_states, weight):
    print("\x1b]0;title\x07 \u2066::debug::x")
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float() * 2).to(hidden_states.dtype)
PYTHON
"$python" -I -S - <<'PYTHON'
import json

evil = "\x1b[2J\x9b\u202e\u200b\n::error::injected\n##[error]x\"'''\"\"\"\\"
path = "definitions/rmsnorm/wrong.json"
definition = json.load(open(path))
definition["description"] = "Epsilon is 1e-6. " + evil
definition["tags"] = [evil]
json.dump(definition, open(path, "w"))
# a shell would execute a part of this name
axes, random = {"batch_size": 3}, {"type": "random"}
workload = {"uuid": "it's; $(id)", "axes": axes, "inputs": {"hidden_states": random, "weight": random}}
import os
os.makedirs("workloads/rmsnorm", exist_ok=True)
with open("workloads/rmsnorm/wrong.jsonl", "w") as lines:
    lines.write(json.dumps({"definition": "wrong", "solution": None, "workload": workload, "evaluation": None}) + "\n")
    workload = dict(workload, uuid=evil)
    lines.write(json.dumps({"definition": "wrong", "solution": None, "workload": workload, "evaluation": None}) + "\n")
definition["name"] = "n\u202ex"
json.dump(definition, open("definitions/rmsnorm/n\u202ex.json", "w"))
json.dump(dict(definition, name=evil), open("definitions/rmsnorm/other.json", "w"))
json.dump(dict(definition, name="key", **{evil: evil}), open("definitions/rmsnorm/key.json", "w"))
json.dump(dict(definition, name="op", outputs={evil: {"shape": [evil], "dtype": evil}}), open("definitions/rmsnorm/op.json", "w"))
json.dump(dict(definition, name="constraint", constraints=[evil]), open("definitions/rmsnorm/constraint.json", "w"))
PYTHON

run verify -v --device "$device" --sizes small --jobs 1
expect_exit 2
keep text
expect_says 'raised ValueError: before\x00\ud800\x1b[2J\u009b31m\u202e' '\x3a:set-output' '\x23#[error]x \x23#vso[task]y'
expect_says "--case 'workload:it'\\''s; \$(id)'"
expect_silence_about 'crashed'
GITHUB_ACTIONS=true run verify --force --device "$device" --sizes small --jobs 1
keep actions
GITHUB_ACTIONS=true run verify --format github --junit "$work/shown/junit.xml" --device "$device" --sizes small --jobs 1
expect_exit 2
keep github
verify
keep json
expect_status hostile error raised
run explain --device "$device" hostile wrong other
keep explain
run status --device "$device"
keep status
run affected "definitions/rmsnorm/$(printf '\033[2J\342\200\256').json"
keep affected
run "$(printf '\033[2J\n::error::x')"
keep command
run verify "$(printf '\033[2J\342\200\256')"
keep name
git -c init.defaultBranch=main init -q .
run affected --since "$(printf '\033[2J\n::error::x')"
keep since
run generate
keep generate
watch
keep watch
end_watch
cp tests/references/test_*.py "$work/shown" 2>/dev/null || fail "no files were generated"

expectations=$((expectations + 1))
"$python" -I -S - "$work/shown" <<'PYTHON' >"$work/python" 2>&1 || fail "$(tail -n 3 "$work/python")"
import json
import os
import re
import sys
import unicodedata
import xml.etree.ElementTree

folder = sys.argv[1]
names = sorted(os.listdir(folder))
for name in names:
    data = open(os.path.join(folder, name), "rb").read()
    text = data.decode("utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}: {line[:300]!r}"
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\t" for c in line), where
        if name.endswith((".out", ".err")):
            ours = name == "github.out" and re.match("::(error|warning) (file|title)=", line)
            assert ours or not line.lstrip().startswith("::"), where
            assert "##[" not in line and "##vso[" not in line, where
    if name.startswith("test_"):
        compile(text, name, "exec")
        assert data.isascii(), name
json.loads(open(os.path.join(folder, "json.out")).read())
for line in open(os.path.join(folder, "watch.out")):
    json.loads(line)
xml.etree.ElementTree.parse(os.path.join(folder, "junit.xml"))
assert "x1b]0;title" in open(os.path.join(folder, "test_rmsnorm.py")).read()
PYTHON
