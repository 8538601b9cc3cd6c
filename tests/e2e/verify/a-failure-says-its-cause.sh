#!/bin/sh
# The report of a failure begins with the cause: a mistake that explains the outputs, or the region in which the outputs
# differ from the ground truth. One case is printed in full, and the last line is the command that repeats it. A
# reference with an unknown mistake gets no diagnosis.
. "$(dirname "$0")/../harness.sh"
norm() { # norm NAME EPSILON OUTPUT: an RMS norm that returns the expression OUTPUT
	mkdir -p definitions/rmsnorm
	"$python" -I -S -c '
import json, sys
rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
name, epsilon, output = sys.argv[1:]
reference = f"""import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + {epsilon})
    output = (normed * weight.float()).to(hidden_states.dtype)
    return {output}
"""
print(json.dumps({
    "name": name, "op_type": "rmsnorm", "description": "A small RMS norm. Epsilon is 1e-6.",
    "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
    "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
    "outputs": {"output": rows}, "reference": reference}))' "$@" >"definitions/rmsnorm/$1.json"
}
norm right 1e-6 output
norm epsilon 1e-5 output
norm weightless 1e-6 'normed.to(hidden_states.dtype)'
norm rows 1e-6 'torch.cat((output[:2], torch.zeros_like(output[2:])))'
norm odd 1e-6 'output * torch.cos(output)'
verify right
expect_exit 0
expect "d['right']['diagnosis'] == [] and all(c['diagnosis'] == [] and c['regions'] == [] for c in d['right']['cases'])"
verify epsilon
expect_exit 1
expect "d['epsilon']['diagnosis'] == ['eps = 1e-05; 1e-06 is attested by description']"
verify weightless
expect "d['weightless']['diagnosis'] == [\"input 'weight' was left out (taken as 1)\"]"
verify rows
expect "any(\"output 'output' is 0 only where batch_size >= 2\" in r for c in d['rows']['cases'] for r in c['regions'])"
verify odd
expect_exit 1
expect "d['odd']['diagnosis'] == []"

run verify epsilon --sizes small --device cpu
expect_exit 1
expect_says 'diagnosis: behaves as if eps = 1e-05; 1e-06 is attested by description' 'and 1 more failed case (-v prints all)'
[ "$(grep -c 'FAILED: numeric' "$work/out")" = 1 ] || fail "more than one case is printed"
[ "$(sed -n 2p "$work/out" | cut -c1-20)" = '         diagnosis: ' ] || fail "the diagnosis is not the first line"
tail -n 2 "$work/out" | head -n 1 | grep -q '^         reftest verify rmsnorm/epsilon --case' || fail "the command is not the last line"
run verify epsilon --sizes small --device cpu -v
[ "$(grep -c 'FAILED: numeric' "$work/out")" = 2 ] || fail "-v does not print all cases"

# The list of failures at the end gives the diagnosis, or else the region in which the outputs differ. If this cause
# does not fit on the line of the definition's name, it is on the next line.
norm w 1e-6 'normed.to(hidden_states.dtype)'
step='verify on a terminal of 80 columns'
expectations=$((expectations + 1))
NO_COLOR=1 "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 80 "$reftest" verify epsilon rows w --sizes small --device cpu >"$work/out"
cat >"$work/expected" <<'T'
FAILED   rmsnorm/epsilon
         behaves as if eps = 1e-05; 1e-06 is attested by description
FAILED   rmsnorm/rows
         output 'output' is 0 only where batch_size >= 2 (the last 254 of 256)
FAILED   rmsnorm/w: behaves as if input 'weight' was left out (taken as 1)
T
grep -A 4 '^FAILED   rmsnorm/epsilon$' "$work/out" | cmp - "$work/expected" || fail "the list of failures is not as expected"

# A cause that does not fit into one line is folded. If the message of an exception is very long, the list shows only
# its beginning.
norm wordy 1e-6 output
edit definitions/rmsnorm/wordy.json 'return output' "raise ValueError('x' + ' word' * 500)"
step='verify on a terminal of 62 columns'
expectations=$((expectations + 2))
NO_COLOR=1 "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 62 "$reftest" verify rows wordy --sizes small --device cpu >"$work/out"
cat >"$work/expected" <<'T'
FAILED   rmsnorm/rows
         output 'output' is 0 only where batch_size >= 2 (the
           last 254 of 256)
T
grep -A 2 '^FAILED   rmsnorm/rows$' "$work/out" | cmp - "$work/expected" || fail "a cause is not folded"
sed -n '/^ERROR    rmsnorm.wordy$/,/^2 definitions/p' "$work/out" >"$work/last"
{ grep -q ' word…$' "$work/last" && [ "$(wc -l <"$work/last")" -le 9 ]; } || fail "a long message is not cut"

# status --no-cases names the cause of each failure. `status` reads no details of a definition whose summary says that
# it passed.
run verify right --device cpu
REFTEST_TRACE=1 run status --device cpu --format json --no-cases right epsilon
expect "d['right']['counts']['passed'] == d['right']['counts']['cases'] > 0 == d['right']['counts']['failed'] and 'cases' not in d['right']"
expect "d['epsilon']['diagnosis'] == ['eps = 1e-05; 1e-06 is attested by description']"
expect_says 'plan: rmsnorm/epsilon'
expect_silence_about 'plan: rmsnorm/right'

run verify epsilon --sizes small --device cpu --format jsonl
expect_exit 1
expect_says '"event": "verdict"' '"approval": null, "diagnosis": ["eps = 1e-05; 1e-06 is attested by description"], "cases": ['
