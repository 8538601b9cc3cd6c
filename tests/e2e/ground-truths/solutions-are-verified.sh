#!/bin/sh
# `verify --solutions` compares each solution with the ground truth of the op family or, without an op family, with the
# reference itself. If a solution fails, the verdict of its definition stays the same, and the result of the solution is
# not stored.
. "$(dirname "$0")/../harness.sh"
given tiny_norm

# `solve AUTHOR OP_TYPE DEFINITION NAME [KEY=VALUE…]`: writes a solution in Python with the source on standard input.
solve() {
	mkdir -p "solutions/$1/$2/$3"
	cat >source
	"$python" -I -S - "$@" <<'P'
import json
import sys

author, op_type, definition, name, *rest = sys.argv[1:]
spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run"}
spec.update((key, json.loads(value)) for key, value in (word.split("=", 1) for word in rest))
with open(f"solutions/{author}/{op_type}/{definition}/{name}.json", "w") as out:
    json.dump({"name": name, "definition": definition, "author": author, "spec": spec,
               "sources": [{"path": "main.py", "content": open("source").read()}]}, out)
P
}
define() {
	mkdir -p definitions/doubled
	"$python" -I -S - "$@" <<'P'
import json
import sys

name, body = sys.argv[1:]
with open(f"definitions/doubled/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "doubled", "description": "",
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
    }, out)
P
}
# `solution NAME FIELD`: prints a Python expression for a field of a solution's result.
solution() {
	printf "[one for one in r['solutions'] if one['name'] == '%s'][0]['%s']" "$1" "$2"
}

solve ada rmsnorm tiny_norm right <<'P'
import torch


def run(hidden_states, weight, output):
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    output.copy_((x * scale * weight.to(torch.float32)).to(output.dtype))
P
solve ada rmsnorm tiny_norm epsilon <<'P'
import torch


def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-2)
    return (x * scale * weight.to(torch.float32)).to(hidden_states.dtype)
P
verify --solutions
expect_exit 1
expect_status tiny_norm passed
expect "len(r['solutions']) == 2 and r['summary']['passed'] == 1 and r['summary']['exit'] == 1"
expect "$(solution right status) == 'passed' and $(solution right ground_truth) == 'builtin'"
expect "$(solution epsilon status) == 'failed' and $(solution epsilon reason) == 'numeric'"
expect "$(solution epsilon path) == 'solutions/ada/rmsnorm/tiny_norm/epsilon.json' and $(solution epsilon author) == 'ada'"
expect "[c['id'] for c in $(solution epsilon cases)] == [c['id'] for c in r['definitions'][0]['cases']]"
rm solutions/ada/rmsnorm/tiny_norm/epsilon.json
verify --solutions
expect_exit 0
expect "not any(c['kept'] for c in $(solution right cases))"
verify
expect_ran 0

# If a definition has no family, its solutions must agree with its reference. The comparison is weak evidence as long as
# the reference itself has only the verdict "checked".
rm -r definitions/rmsnorm solutions
define plain 'return x + x'
solve bob doubled plain same <<'P'
import torch


def run(x):
    return x + x
P
solve bob doubled plain other <<'P'
def run(x):
    return 2 * x
P
# This solution ignores the strides of its input, like a kernel that expects a contiguous input.
solve bob doubled plain flat <<'P'
import torch


def run(x):
    return 2 * torch.as_strided(x, x.shape, (1,), x.storage_offset())
P
solve bob doubled plain wrong <<'P'
def run(x):
    return 2.5 * x
P
solve bob doubled plain raises <<'P'
def run(x):
    raise ValueError("not today")
P
solve bob doubled plain writes <<'P'
def run(x):
    return x.mul_(2)
P
solve bob doubled plain shape <<'P'
def run(x):
    return (2 * x).unsqueeze(0)
P
solve bob doubled plain loops <<'P'
def run(x):
    while True:
        pass
P
solve bob doubled plain gpu 'languages=["triton"]' <<'P'
def run(x):
    return x
P
solve bob doubled plain syntax <<'P'
def run(x:
P
define bad 'return x[:1]'
solve bob doubled bad waits <<'P'
def run(x):
    return 2 * x
P
verify --solutions --timeout 5
expect_exit 2
expect_status plain checked
for case in "same|checked|no ground truth verified the reference" "other|checked|agrees with reference, but" \
	"flat|checked|agrees with reference, but" "wrong|failed|output 'y" \
	"raises|error|bob/doubled/plain/raises.json raised ValueError: not today" "writes|failed|input 'x" \
	"shape|failed|(1, 4)" "loops|error|within" "gpu|skipped|needs a GPU" "syntax|invalid|not valid Python" \
	"waits|skipped|the reference is not verified: its status is failed"; do
	name=${case%%|*} rest=${case#*|}
	expect "$(solution "$name" status) == '${rest%%|*}'"
	expect "'''${rest#*|}''' in $(solution "$name" message)"
done
expect "not any('the reference' in str(s['message']).replace('verified the reference', '') for s in r['solutions'] if s['name'] != 'waits')"
expect_no_process
rm definitions/doubled/bad.json solutions/bob/doubled/plain/gpu.json solutions/bob/doubled/plain/syntax.json
rm solutions/bob/doubled/plain/loops.json

# If the dataset has its own ground truth for a definition, the definition's solutions are compared with this ground
# truth, like its reference.
mkdir -p truths/doubled
printf 'def run(x):\n    return x * 2\n' >truths/doubled/plain.py
run verify --solutions --device cpu --sizes small
expect_exit 1
expect_says 'passed   solution other of doubled/plain, by bob: 1 case, compared with truth'
expect_says 'failed   solution wrong of doubled/plain, by bob'
expect_says '7 solutions: 3 passed, 1 error, 3 failed'
run verify --solutions --staged
expect_exit 2
expect_says '--solutions runs solutions'
