#!/bin/sh
# The sizes that reftest chooses satisfy the constraints on axes. If no sizes satisfy them, only the workloads are
# verified, and the verdict says so.
. "$(dirname "$0")/../harness.sh"
constrained() { # NAME CONSTRAINT…: a norm whose axes have these constraints
	"$python" -I -S -c '
import json, sys
rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
print(json.dumps({
    "name": sys.argv[1], "op_type": "rmsnorm", "description": "A small RMS norm. Epsilon is 1e-6.",
    "axes": {"batch_size": {"type": "var"}, "half": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
    "constraints": sys.argv[2:],
    "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
    "outputs": {"output": rows}, "reference": sys.stdin.read()}))' "$@" >"definitions/rmsnorm/$1.json" <<'P'
import torch


def run(hidden_states, weight):
    if hidden_states.shape[0] % 6 != 0:
        raise ValueError("the batch is no multiple of 6")
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
}
mkdir -p definitions/rmsnorm workloads/rmsnorm
constrained multiples "batch_size % 6 == 0" "batch_size <= 60" "hidden_size == 2 * half"
constrained none "batch_size % 6 == 0" "batch_size == batch_size + 1"
constrained recorded "batch_size ** 3 == 1006012008"
echo '{"definition": "recorded", "workload": {"uuid": "w", "axes": {"batch_size": 1002, "half": 32}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}}, "solution": null, "evaluation": null}' >workloads/rmsnorm/recorded.jsonl
verify multiples
expect_exit 0
expect "[x['axes']['batch_size'] for x in d['multiples']['cases']] == [6, 60]"
verify none
expect_exit 3
expect "d['none']['message'] == 'reftest generates no cases, because it found no axis lengths that satisfy the constraints; only workloads are verified'"
verify recorded
expect_exit 0
expect "[x['id'] for x in d['recorded']['cases']] == ['workload:w']"
expect "'reftest generates no cases, because it found no axis lengths that satisfy the constraints; only workloads are verified' in d['recorded']['notes']"

# Generated tests have the same sizes as the cases of verify.
run generate
expect_exit 0
grep -q 'conftest.size("small", batch_size=60)' tests/references/test_rmsnorm.py || fail "the generated tests have other sizes"

# If a definition has no cases, reftest does not choose an op family for it by its shapes alone. If generated inputs
# violate a constraint on values, their case is skipped. A workload line whose inputs satisfy the constraint gets the
# status "checked".
mkdir -p definitions/novel workloads/novel
"$python" -I -S - <<'EOF'
import json
import struct

def write(name, constraint, inputs, body):
    with open(f"definitions/novel/{name}.json", "w") as out:
        json.dump({"name": name, "op_type": "novel", "description": "", "axes": {"m": {"type": "var"}, "n": {"type": "var"}},
                   "constraints": [constraint], "inputs": inputs, "outputs": {"y": inputs["x"]},
                   "reference": f"import torch\n\n\ndef run({', '.join(inputs)}):\n    {body}\n"}, out)

write("impossible", "m == m + 1", {"x": {"shape": ["m", "n"], "dtype": "float32"}}, "return torch.softmax(x, -1)")
both = {"x": {"shape": ["m"], "dtype": "float32"}, "starts": {"shape": ["n"], "dtype": "int32"}}
write("contents", "starts.max() == 7", both, "return x * 2 + starts.sum()")
write("pointers", "m == starts[-1].item()", both, "assert int(starts[0]) == 0 and (starts.diff() >= 0).all()\n    return x * 2 + starts[1:-1].sum()")
write("places", "starts.max() < m", both, "return x * 2 + x[starts.long()].sum()")
header = json.dumps({"starts": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}).encode()
with open("starts.safetensors", "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header + struct.pack("<2i", 7, 3))
with open("workloads/novel/contents.jsonl", "w") as out:
    json.dump({"definition": "contents", "solution": None, "evaluation": None, "workload": {"uuid": "u", "axes": {"m": 4, "n": 2}, "inputs": {
        "x": {"type": "random"}, "starts": {"type": "safetensors", "path": "starts.safetensors", "tensor_key": "starts"}}}}, out)
EOF
sed 's/"impossible"/"divided"/; s/"m": {"type": "var"}/"m": {"type": "expr", "expression": "8 \/\/ (n - n)"}/; s/m == m + 1/n >= 1/' \
	definitions/novel/impossible.json >definitions/novel/divided.json
verify divided
expect "'reftest generates no cases, because the axis m = 8 // (n - n) cannot be computed: a division by zero' in d['divided']['message']"
verify impossible contents pointers places
for name in pointers places; do expect_status $name checked no_ground_truth; done
expect "d['impossible']['status'] == 'skipped' and 'shapes' not in str(d['impossible']['notes']) and d['impossible']['matched_by'] is None"
expect "c['contents', 'small:m=4,n=4']['status'] == 'skipped'"
expect "'reftest generates break the definition\\'s constraint starts.max() == 7' in c['contents', 'small:m=4,n=4']['message']"
# If a definition has a workload, a skipped case with generated inputs does not affect the status of the definition.
expect "c['contents', 'workload:u']['status'] == 'checked' and d['contents']['status'] == 'checked'"
