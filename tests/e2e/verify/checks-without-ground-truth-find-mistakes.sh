#!/bin/sh
# Tests the checks that need no ground truth. For each check, there is a reference that passes all checks, and a
# reference with a mistake that this check finds. Only the check `devices`, which needs a GPU, has a test of its own:
# tests/gpu/the-cpu-confirms-what-a-gpu-computes.sh. The checks cannot show whether a reference computes the right
# values. Therefore definitions without ground truth get at most the status "checked", and never "passed".
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'EOF'
import json
import os

X, BF = ({"x": {"shape": ["n", "w"], "dtype": dtype}} for dtype in ("float32", "bfloat16"))
# name: (body, description, status, {check: result}). A check that is not listed passes.
TABLE = {
    "right": ("return 3 * torch.softmax(x, -1)", "", "checked", {}),
    "wrong": ("return 3 * torch.softmax(x, 0)", "Weights of each row", "checked", {"rows": "property"}),
    "dice": ("return x + torch.randn_like(x)", "", "skipped", {"seeds": "fails", "rows": "property", "numerics": "property"}),
    "python_dice": ("import random\n    return x + random.random()", "", "skipped", {"seeds": "fails"}),
    "draws": ("return x + torch.randn_like(x)", "Adds random samples.", "checked",
                 {"seeds": "property", "rows": "property", "numerics": "property"}),
    "writes": ("return x.mul_(2) + 0", "", "skipped", {"inputs_kept": "fails"}),
    "nan": ("return torch.sqrt(x)", "", "skipped", {"finite": "fails"}),
    "infinite": ("return x.masked_fill(x > 0, float('-inf'))", "", "checked", {"finite": "property"}),
    "overflows": ("return x * 3e38 * 2", "", "checked", {"finite": "property"}),
    "constant": ("return torch.ones_like(x)", "", "skipped", {"not_constant": "fails"}),
    "signed_zero": ("return x * 0", "", "skipped", {"not_constant": "fails"}),
    "small_only": ("return x * 2 if len(x) < 1000 else x * 0", "", "checked", {}),
    "truncated": ("return (x / 32).int().float()", "", "skipped", {"not_constant": "fails"}),
    "strided": ("return torch.as_strided(x, x.shape, (8, 1)) * 1.0", "", "skipped", {"strided": "fails"}),
    "mean": ("return x - x.mean(0)", "", "checked", {"rows": "property"}),
    "position": ("return x * torch.arange(len(x), device=x.device)[:, None]", "", "checked", {"rows": "property"}),
    "cancels": ("y = x + 3000\n    return (y * y).mean(-1, keepdim=True) - y.mean(-1, keepdim=True) ** 2 + 0 * x", "", "checked",
                {"numerics": "property"}),
    "turns": ("return torch.sin(x * 1000003)", "", "checked", {"numerics": "property"}),
    "ends": ("import os\n    if not x.is_contiguous():\n        os._exit(3)\n    return x * 2", "", "checked",
             {"strided": "not_run", "rows": "not_run", "numerics": "not_run"}),
    "narrow": ("assert x.dtype == torch.float32\n    return x * 2", "", "checked", {"numerics": "not_run"}),
}
os.makedirs("definitions/novel")
for name, (body, description, _, _) in TABLE.items():
    with open(f"definitions/novel/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": "novel", "description": description,
            "axes": {"n": {"type": "var"}, "w": {"type": "const", "value": 8}},
            "inputs": X, "outputs": {"y": {"shape": ["n", "w"], "dtype": "float32"}},
            "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
        }, out)
json.dump(TABLE, open("../expected", "w"))
EOF
verify
expect_exit 3
expect "s['passed'] == 0 and s['failed'] == 0 and s['error'] == 0"
wrong="[(n, d[n]['status'], [(c['name'], c['result'], c['evidence']) for c in d[n]['cases'][0]['checks'] if c['result'] != 'holds'])
	for n, (_, _, status, results) in json.load(open('../expected')).items()
	if d[n]['status'] != status or len(d[n]['cases'][0]['checks']) != 10
	or {c['name']: c['result'] for c in d[n]['cases'][0]['checks'] if c['result'] != 'holds' and c['name'] != 'devices'}
	!= {k: v for k, v in results.items() if v != 'holds'}]"
step="these definitions: $(value "$wrong")"
expect "$wrong == []"
check() { # check NAME CHECK: the evidence of a check
	printf "[c['evidence'] for c in d['%s']['cases'][0]['checks'] if c['name'] == '%s'][0]" "$1" "$2"
}
expect "'nothing in the definition says that the operation draws random numbers' in $(check dice seeds)"
expect "\"no output depends on the values of input 'x'\" in $(check truncated not_constant)"
expect "'unstable: ' in $(check cancels numerics) and 'units of float32' in $(check cancels numerics)"
expect "'and changes by ' in $(check cancels numerics) and 'if the inputs change by half a unit' in $(check cancels numerics)"
expect "'sensitive: ' in $(check turns numerics)"
expect "'AssertionError' in $(check narrow numerics)"
expect "$(check right rows).startswith(\"along 'n', permuting the rows permutes the outputs\")"
expect "'The check seeds fails: ' in d['dice']['cases'][0]['message']"
# If the text of a definition says that its operation draws random samples, the subject digest includes this fact.
# Without this text, the definition `draws` has the same subject digest as the definition `dice`, so no case runs.
edit definitions/novel/draws.json 'Adds random samples.' 'Adds something.'
verify draws
expect_ran 0
expect_status draws skipped no_ground_truth
# The inputs that a workload gives are known to be valid. Therefore a check that fails on them makes the case fail.
mkdir -p workloads/novel
"$python" -I -S - <<'EOF'
import json
import os
import struct

header = json.dumps({"x": {"dtype": "F32", "shape": [2, 8], "data_offsets": [0, 64]}}).encode()
with open("rows.safetensors", "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<16f", *[i - 7.5 for i in range(16)]))
for name in ("nan", "dice", "writes", "right"):
    with open(f"workloads/novel/{name}.jsonl", "w") as out:
        json.dump({"definition": name, "solution": None, "evaluation": None, "workload": {
            "uuid": "given", "axes": {"n": 2},
            "inputs": {"x": {"type": "safetensors", "path": "rows.safetensors", "tensor_key": "x"}}}}, out)
        out.write("\n")
EOF
verify --case workload:given nan dice writes right
expect_exit 1
expect_status nan failed nonfinite
expect_status dice failed nondeterministic
expect_status writes failed mutated_input
expect_status right checked no_ground_truth
# In a large case, the checks examine the outputs of the first run, and then run the reference only once more, with
# another seed.
"$python" -I -S - <<'EOF'
import json

for name in ("dice", "small_only"):
    with open(f"workloads/novel/{name}.jsonl", "a") as out:
        json.dump({"definition": name, "solution": None, "evaluation": None, "workload": {
            "uuid": "large", "axes": {"n": 17 << 16}, "inputs": {"x": {"type": "random"}}}}, out)
        out.write("\n")
EOF
verify --case workload:large dice small_only
expect "$(check small_only strided) == 'the case is too large for the additional runs of the checks'"
expect "'differs with another seed' in $(check dice seeds) and d['dice']['status'] == 'skipped'"
expect "'another seed' in $(check small_only seeds) and d['small_only']['status'] == 'checked'"
expect "$(check small_only not_constant) == \"all elements of output 'y' are 0\""
# If there are many inputs, gradients show which of them have an effect. If an input has no gradient, or an output seems
# constant, the reference runs again with other values of the inputs.
"$python" -I -S - <<'EOF'
import json

NAMES = [f"p{i}" for i in range(12)]
ALL = " + ".join(f"torch.sin({name})" for name in NAMES)
TABLE = {
    "many": f"y = {ALL}",
    "idle": f"y = {ALL.replace('p7', 'p8')}",
    "detached": f"with torch.no_grad():\n        y = {ALL}",
    # The output 'best' changes if only p0 or only p1 changes, but not if both change.
    "pair": f"y = {ALL}\n    first.extend([p0.clone(), p1.clone()])\n    "
            "return y, (y.sum(-1).long() * 0 + 1 + (torch.equal(p0, first[0]) ^ torch.equal(p1, first[1])))",
    "fixed": f"y = {ALL}\n    return y, torch.ones(len(y), dtype=torch.int64, device=y.device)",
}
for name, body in TABLE.items():
    with open(f"definitions/novel/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": "novel", "axes": {"n": {"type": "var"}, "w": {"type": "const", "value": 8}},
            "inputs": {name: {"shape": ["n", "w"], "dtype": "float32"} for name in NAMES},
            "outputs": {"y": {"shape": ["n", "w"], "dtype": "float32"}, "best": {"shape": ["n"], "dtype": "int64"}},
            "reference": f"import torch\n\ncalls, first = 0, []\n\n\n@torch.no_grad()\ndef run({', '.join(NAMES)}):\n"
                         "    global calls\n    calls += 1\n    assert calls <= 8, 'too many calls'\n"
                         f"    {body}\n    return y, y.argmax(-1)\n".replace("<= 8", "<= 8" if name == "many" else "<= 40"),
        }, out)
EOF
verify many idle detached fixed pair
expect "$(check many not_constant) == 'each of 12 inputs influences an output (gradients show this for 12 inputs, a second set of values for 0), and no output is constant'"
expect "[c['name'] for c in d['many']['cases'][0]['checks'] if c['result'] != 'holds'] == ['devices']"
expect "\"no output depends on the values of input 'p7'\" in $(check idle not_constant) and d['idle']['status'] == 'skipped'"
expect "$(check detached not_constant) == 'a second set of values was tried for each of 12 inputs, \
and each of these sets changes an output, and no output is constant'"
expect "$(check pair not_constant) == 'each of 12 inputs influences an output (gradients show this for 11 inputs, a second set of values for 1), and no output is constant'"
expect "$(check fixed not_constant) == \"output 'best' depends on no input\" and d['fixed']['status'] == 'skipped'"

# The check `rows` tests each axis by itself. If the first case shows that rows along an axis are independent, the rows
# must also be independent in the later cases, even if the verdicts of these cases are stored. If a reference mixes rows
# only in long sequences, a case with given inputs fails, and a case with random inputs is skipped. A reference that
# always mixes rows does not fail.
mkdir definitions/tokens workloads/tokens
"$python" -I -S - <<'EOF'
import json
import struct

MEAN = "x - x.mean(1, keepdim=True)"
header = json.dumps({"x": {"dtype": "F32", "shape": [2, 6, 8], "data_offsets": [0, 384]}}).encode()
with open("tokens.safetensors", "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<96f", *[i % 7 - 3 for i in range(96)]))
# The cases with b = 70 have so many rows that the judge sorts the rows on the CPU.
GIVEN = {"type": "safetensors", "path": "tokens.safetensors", "tensor_key": "x"}
for name, body in (("turned", "x.flip(2) * 3 + 1"), ("causal", "x.cumsum(1)"), ("batches", "x - x.mean(0)"),
                   ("long", f"x * 2 if x.shape[1] < 5 else {MEAN}"), ("given", f"x * 2 if x.shape[1] < 5 else {MEAN}")):
    rows = {"shape": ["b", "s", "h"], "dtype": "float32"}
    with open(f"definitions/tokens/{name}.json", "w") as out:
        json.dump({"name": name, "op_type": "tokens", "axes": {"b": {"type": "var"}, "s": {"type": "var"}, "h": {"type": "const", "value": 8}},
                   "inputs": {"x": rows}, "outputs": {"y": rows}, "reference": f"def run(x):\n    return {body}\n"}, out)
    with open(f"workloads/tokens/{name}.jsonl", "w") as out:
        json.dump({"definition": name, "solution": None, "evaluation": None, "workload": {
            "uuid": "one", "axes": {"b": 2 if name == "given" else 70, "s": 6}, "inputs": {"x": GIVEN if name == "given" else {"type": "random"}}}}, out)
        out.write("\n")
EOF
for turn in first stored; do
	verify --op-type tokens
	expect_exit 1
	expect "{n: [[c['axes'] for c in case['checks'] if c['name'] == 'rows'][0] for case in o['cases']] for n, o in d.items()} == {
		'turned': [dict(b=True, s=True)] * 2, 'causal': [dict(b=True, s=False)] * 2, 'batches': [dict(b=False, s=True)] * 2,
		'long': [dict(b=True, s=True), dict(b=True, s=False)], 'given': [dict(b=True, s=True), dict(b=True, s=False)]}"
	expect "{n: [case['status'] for case in o['cases']] for n, o in d.items()} == {**dict.fromkeys(('turned', 'causal', 'batches'),
		['checked'] * 2), 'long': ['checked', 'skipped'], 'given': ['checked', 'failed']}"
	expect "\"rows along 's' are independent of each other in case small:b=4,s=4, but not in this case: \" in d['given']['cases'][1]['message']"
done
expect_ran 0
expect_status given failed numeric
