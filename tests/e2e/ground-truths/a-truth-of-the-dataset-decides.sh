#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A dataset can have its own ground truth for a definition, in the file truths/{op_type}/{name}.py. If the definition
# has no op family, reftest uses this ground truth. A correct reference passes, and a wrong one fails. If a ground truth
# file cannot be used, reftest skips it, prints the position and the reason, and verifies the other definitions.
. "$(dirname "$0")/../harness.sh"

# `define_sum NAME BODY`: defines an operation without a family, the sum of squares of each row.
define_sum() {
	mkdir -p definitions/row_energy truths/row_energy
	"$python" -I -S - "$1" "$2" <<'P'
import json
import sys

name, body = sys.argv[1:]
with open(f"definitions/row_energy/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "row_energy", "description": "",
        "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
        "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
    }, out)
P
}
# `truth NAME`: writes standard input to the file in truths/ that is the ground truth of the definition NAME.
truth() {
	cat >"truths/row_energy/$1.py"
}
right='return (x * x).sum(-1)'
other='    return torch.einsum("nw,nw->n", x, x)'
define_sum right "$right"
define_sum wrong 'return (x * x).sum(-1) * 1.01'
for name in right wrong; do
	truth $name <<P
import torch


def run(x):
$other
P
done
define_sum alone "$right"
verify
expect_exit 1
expect_status right passed
expect_status wrong failed numeric
expect_status alone checked no_ground_truth
expect "c['right', 'small:n=4']['ground_truth'] == 'truth' and len(c['right', 'small:n=4']['ground_truth_version']) == 32"
expect "\"output 'y'\" in c['wrong', 'small:n=4']['message']"
expect "all(all_of('right', 'kept') + all_of('wrong', 'kept'))"
rm definitions/row_energy/wrong.json truths/row_energy/wrong.py definitions/row_energy/alone.json
verify
expect_exit 0
expect_ran 0

# If only a comment of a ground truth file changes, no case runs. If the file's code changes, the cases that were
# verified with this file run again.
echo '# a comment' >>truths/row_energy/right.py
verify
expect_ran 0
truth right <<'P'
def run(x):
    return x.square().sum(-1).mul(0.5)
P
expect_why right 'ground truth truth has changed since the verdict was stored'
verify
expect_exit 1
expect_ran 1
rm truths/row_energy/right.py
verify
expect_exit 3
expect_status right checked no_ground_truth
truth right <<P
import torch


def run(x):
$other
P
verify
expect_exit 0

# If a ground truth file cannot be used, it is skipped, and a message gives its position and the reason. The correct
# file is still used.
define_sum same "$right"
truth same <<'P'
import torch


def run(x):  # the same code
    return (x*x).sum(-1)
P
define_sum raises "$right"
truth raises <<'P'
def run(x):
    rows = x.unbind(0)
    raise ValueError("no such row: %d" % len(rows))
P
define_sum writes "$right"
truth writes <<'P'
def run(x):
    return x.mul_(x).sum(-1)
P
define_sum broken "$right"
truth broken <<'P'
def run(x):
    return (x * x.sum(-1)
P
define_sum nameless "$right"
truth nameless <<'P'
def truth(x):
    return (x * x).sum(-1)
P
define_sum shape "$right"
truth shape <<'P'
def run(x):
    return (x * x).sum(-1, keepdim=True)
P
define_sum exits "$right"
truth exits <<'P'
def run(x):
    raise SystemExit("enough")
P
define_sum dies "$right"
truth dies <<'P'
import os


def run(x):
    os._exit(7)
P
printf 'def run(x):\n    return "\000"\n' | truth nul
define_sum nul "$right"
verify
expect_exit 3
expect_status right passed
for case in \
	"same|truths/row_energy/same.py has the same code as the reference, so it cannot verify the reference" \
	"raises|truths/row_energy/raises.py raised ValueError: no such row: 4" \
	"raises|line 3, in run" \
	"writes|truths/row_energy/writes.py: it changed its input 'x', first at [0, 0]" \
	"broken|truths/row_energy/broken.py:2:12: the ground truth is not valid Python" \
	"nameless|truths/row_energy/nameless.py: expected a function run() at top level" \
	"shape|truths/row_energy/shape.py: output 'y' is (4, 1) float32, but it is declared as (4,) float32" \
	"exits|truths/row_energy/exits.py called sys.exit(enough)" \
	"dies|truths/row_energy/dies.py did not answer: its process terminated with" \
	"nul|truths/row_energy/nul.py: expected Python source in UTF-8"; do
	expect_status "${case%%|*}" checked no_ground_truth
	expect "'''${case#*|}''' in c['${case%%|*}', 'small:n=4']['message']"
done
