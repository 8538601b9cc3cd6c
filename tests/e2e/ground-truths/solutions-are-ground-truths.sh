#!/bin/sh
# The solutions of a dataset can be ground truths: all solutions of a definition, the solutions with a certain name, or
# the solutions of a certain author. Solutions run in the same sandbox as references. A solution that cannot be used is
# skipped, a message gives the position and the reason, and the other solutions are used.
. "$(dirname "$0")/../harness.sh"

# `define NAME BODY [TAG]`: defines an operation without a family, the sum of squares of each row.
define() {
	mkdir -p definitions/row_energy
	"$python" -I -S - "$@" <<'P'
import json
import sys

name, body, *tags = sys.argv[1:]
with open(f"definitions/row_energy/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "row_energy", "description": "", "tags": tags,
        "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
        "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
    }, out)
P
}

# `solve AUTHOR DEFINITION NAME [KEY=VALUE…]`: writes a solution and copies standard input to its entry file. KEY is a
# member of the solution's spec, and the key `+FILE` adds a source file.
solve() {
	mkdir -p "solutions/$1/row_energy/$2"
	cat >source
	"$python" -I -S - "$@" <<'P'
import json
import sys

author, definition, name, *rest = sys.argv[1:]
spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run"}
spec.update((key, json.loads(value)) for key, value in (word.split("=", 1) for word in rest if not word.startswith("+")))
sources = [{"path": spec["entry_point"].split("::")[0], "content": open("source").read()}]
sources += [{"path": word[1:].split("=", 1)[0], "content": word.split("=", 1)[1]} for word in rest if word.startswith("+")]
with open(f"solutions/{author}/row_energy/{definition}/{name}.json", "w") as out:
    json.dump({"name": name, "definition": definition, "author": author, "spec": spec, "sources": sources}, out)
P
}

right='return (x * x).sum(-1)'
define right "$right"
define wrong 'return (x * x).sum(-1) * 1.01'
for name in right wrong; do
	solve baseline $name good_$name <<'P'
import torch

from helper import squares


def run(x):
    return torch.einsum("nw,nw->n", x, x)
P
done
solve baseline right good_right '+helper.py=def squares(x):
    return x.square()' destination_passing_style=false <<'P'
import helper


def run(values):
    return helper.squares(values).sum(dim=1)
P
solve ada wrong writes <<'P'
def run(x, y):
    y.copy_((x * x).sum(-1))
P
rm solutions/baseline/row_energy/wrong/good_wrong.json

# Without the option --ground-truth, solutions are not used.
verify
expect_exit 3
expect_status right checked no_ground_truth
# reftest.toml can select solutions for every command. An option on the command line replaces this setting.
echo 'ground-truth = "auto,solution:nobody"' >reftest.toml
verify right
expect_exit 3
echo 'ground-truth = "auto,solution"' >reftest.toml
verify --ground-truth auto
expect_exit 3
expect_status right checked no_ground_truth
verify
expect_exit 1
expect_status right passed
echo 'ground-truth = "auto,solutions"' >reftest.toml
verify
expect_exit 2
expect_says "reftest.toml:1: ground-truth: unknown ground truth 'solutions'"
rm reftest.toml
verify --ground-truth auto,solution
expect_exit 1
expect_status right passed
expect_status wrong failed numeric
expect "c['right', 'small:n=4']['ground_truth'] == 'solution:good_right'"
expect "c['wrong', 'small:n=4']['ground_truth'] == 'solution:writes'"
expect "len(c['right', 'small:n=4']['ground_truth_version']) == 32"

# --ground-truth can select a solution by its name or by its author.
verify --ground-truth solution:baseline right
expect_exit 0
verify --ground-truth solution:good_right right
expect_exit 0
verify --ground-truth solution:nobody right
expect_exit 3
expect "'the definition has no solution of this name or author' in c['right', 'small:n=4']['message']"
run verify --ground-truth solutions right
expect_exit 2
expect_says "unknown ground truth 'solutions'"
rm definitions/row_energy/wrong.json

# Verdicts depend on every source file of a solution, and not on its description.
define one "$right"
solve ada one plain <<'P'
def run(x):
    return x.square().sum(-1)
P
echo 'ground-truth = "auto,solution"' >reftest.toml
verify one
expect_exit 0
run status one --device "$device"
expect_says '1 definition: 1 passed'
run explain one --device "$device"
expect_says 'solution:plain'
rm reftest.toml
verify --ground-truth solution one
expect_exit 0
verify --ground-truth solution one
expect_ran 0
"$python" -I -S - <<'P'
import json

path = "solutions/ada/row_energy/one/plain.json"
content = json.load(open(path))
content["description"] = "another text"
json.dump(content, open(path, "w"))
P
verify --ground-truth solution one
expect_ran 0
solve ada one plain <<'P'
def run(x):
    return x.square().sum(-1) * 2
P
verify --ground-truth solution one
expect_exit 1
expect_status one failed numeric
# A second solution is added, and the next run notices it. With --ground-truth all,solution, both solutions are called
# and must agree.
solve bob one other <<'P'
def run(x):
    return x.square().sum(-1)
P
verify --ground-truth all,solution one
expect_exit 1
expect_status one failed ground_truths_disagree
rm solutions/ada/row_energy/one/plain.json
verify --ground-truth solution one
expect_exit 0

# A solution by the author of the reference may have the same mistake as the reference. If it is the only ground truth,
# the verdict is only "checked".
define own "$right" author:ada
solve ada own same_author <<'P'
def run(x):
    return x.square().sum(-1)
P
verify --ground-truth solution own
expect_exit 3
expect_status own checked no_ground_truth
expect "c['own', 'small:n=4']['message'] == 'the reference agrees with solution:same_author, but ada wrote both the solution and the reference, so they may share a mistake'"
verify --ground-truth solution own
expect_ran 0
solve bob own independent <<'P'
def run(x):
    return x.square().sum(-1)
P
verify --ground-truth solution own
expect_exit 0
expect_status own passed

# A verdict by a solution does not count if the solution can no longer run, although its sources are the same.
define told "$right"
solve ada told plain <<'P'
def run(x):
    return x.square().sum(-1)
P
verify --ground-truth solution told
expect_exit 0
edit solutions/ada/row_energy/told/plain.json '"python"' '"triton"'
verify --ground-truth solution told
expect_exit 3
expect_status told checked no_ground_truth
verify --ground-truth solution told
expect_exit 3
expect_ran 0
edit solutions/ada/row_energy/told/plain.json '"triton"' '"python"'
verify --ground-truth solution told
expect_exit 0
expect_ran 0

# If a solution cannot be used, it is skipped, and a message gives its position and the reason.
define same "$right"
solve ada same copy <<P
import torch


def run(x):  # the same code
    $right
P
define raises "$right"
solve ada raises broken <<'P'
def run(x):
    raise ValueError("no such row: %d" % len(x))
P
define mutates "$right"
solve ada mutates square <<'P'
def run(x):
    return x.mul_(x).sum(-1)
P
define shape "$right"
solve ada shape keepdim <<'P'
def run(x):
    return (x * x).sum(-1, keepdim=True)
P
define loops "$right"
solve ada loops forever <<'P'
def run(x):
    while True:
        pass
P
define syntax "$right"
solve ada syntax open <<'P'
def run(x:
    return x
P
define gpu "$right"
solve ada gpu kernel 'languages=["triton"]' <<'P'
import triton


def run(x):
    return x
P
define cuda "$right"
solve ada cuda kernel 'languages=["cuda"]' 'entry_point="main.cu::run"' <<'P'
void run() {}
P
define tvm "$right"
solve ada tvm kernel 'languages=["cpp"]' 'entry_point="main.cpp::run"' 'binding="tvm-ffi"' <<'P'
void run() {}
P
define leaves "$right"
solve ada leaves path '+../out.py=x = 1' <<'P'
def run(x):
    return x
P
define compiles "$right"
solve ada compiles broken 'languages=["cpp"]' 'entry_point="main.cpp::run"' 'binding="torch"' <<'P'
#include <nonesuch.h>
P
verify --ground-truth solution --timeout 5
expect_exit 3
expect_status right passed
for case in \
	"same|solutions/ada/row_energy/same/copy.json has the same code as the reference, so it cannot verify the reference" \
	"raises|solutions/ada/row_energy/raises/broken.json raised ValueError: no such row: 4" \
	"raises|File \"main.py\", line 2, in run" \
	"mutates|solutions/ada/row_energy/mutates/square.json: it changed its input 'x', first at [0, 0]" \
	"shape|solutions/ada/row_energy/shape/keepdim.json: output 'y' is (4, 1) float32, but it is declared as (4,) float32" \
	"loops|solutions/ada/row_energy/loops/forever.json did not answer within 5 s" \
	"syntax|the source is not valid Python at line 1, column" \
	"gpu|solutions/ada/row_energy/gpu/kernel.json is written in Triton and needs a GPU; this run uses the CPU" \
	"cuda|solutions/ada/row_energy/cuda/kernel.json is written in CUDA and needs a GPU; this run uses the CPU" \
	"tvm|reftest compiles only solutions with the binding \"torch\", but the binding of this solution is \"tvm-ffi\"" \
	"leaves|the path of the source \"../out.py\" leads out of the solution" \
	"compiles|solutions/ada/row_energy/compiles/broken.json"; do
	expect_status "${case%%|*}" checked no_ground_truth
	expect "'''${case#*|}''' in c['${case%%|*}', 'small:n=4']['message']"
done
expect_no_process
