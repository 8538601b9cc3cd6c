#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Definitions in the form of SOL-ExecBench: without op_type, which is then the name of the folder; workload lines without
# "workload", and with a tolerance of their own; inputs that a function of the reference makes.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'PY'
import json
import os

ROWS = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
NORM = '''import torch


@torch.no_grad()
def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)).bfloat16() * weight
'''


def write(folder, name, **changes):
    os.makedirs(f"definitions/{folder}", exist_ok=True)
    with open(f"definitions/{folder}/{name}.json", "w") as out:
        json.dump({
            "name": name, "description": "An RMS norm. Epsilon is 1e-6.", "hf_id": "example/model",
            "custom_inputs_entrypoint": None,
            "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
            "inputs": {"hidden_states": ROWS, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
            "outputs": {"output": ROWS}, "reference": NORM, **changes,
        }, out, indent=1)


write("rmsnorm", "plain")
write("rmsnorm", "null", op_type=None, hf_id=None)
write("rmsnorm", "wrong", reference=NORM.replace("1e-6", "1e-2"))
write("rmsnorm", "elsewhere", op_type="gemm")
write("problems", "unknown")

# Workloads: one line with random inputs, one whose inputs the reference makes, one with a misspelt tolerance.
write("rmsnorm", "lines", custom_inputs_entrypoint="make", reference=NORM + '''

def make(axes, device):
    return {"hidden_states": torch.randn(axes["batch_size"], axes["hidden_size"], device=device).bfloat16()}
''')
os.makedirs("workloads/rmsnorm")
with open("workloads/rmsnorm/lines.jsonl", "w") as out:
    for uuid, kind, tolerance in ("random", "random", {"max_atol": 1}), ("made", "custom", {}), ("misspelt", "random", {"atol": 1}):
        inputs = {"hidden_states": {"type": kind}, "weight": {"type": "random"}}
        line = {"uuid": uuid, "axes": {"batch_size": 3}, "inputs": inputs, "tolerance": tolerance}
        out.write(json.dumps(line) + "\n")
PY

verify
expect_exit 2
for name in plain null; do expect_status "$name" passed; done
expect_status wrong failed numeric
expect_status elsewhere invalid
expect "d['unknown']['op_type'] == 'problems' and d['unknown']['hf_id'] == 'example/model' and d['null']['hf_id'] is None"
expect "not any(one['notes'] for one in d.values() if one['name'] != 'unknown')"
lines="{case['id'].removeprefix('workload:'): case for case in d['lines']['cases']}"
expect "$lines['random']['status'] == 'passed' and $lines['random']['axes'] == {'batch_size': 3}"
expect "$lines['made']['status'] == 'passed' and $lines['made']['axes'] == {'batch_size': 3}"
expect "$lines['misspelt']['status'] == 'invalid' and 'found \"atol\"' in $lines['misspelt']['message']"
run explain plain --device "$device"
expect_says 'hf_id = example/model'
# Stating the op_type of the folder changes nothing.
edit definitions/rmsnorm/plain.json '"name"' '"op_type": "rmsnorm", "name"'
verify plain
expect_cached "len(d['plain']['cases'])"

rm definitions/rmsnorm/elsewhere.json
sed -i 3d workloads/rmsnorm/lines.jsonl
pytest_is_here
run generate
expect_exit 0
run_pytest -rfEs
expect_exit 1
expect_says "wrong, output 'output' against builtin"
expect_says 'SKIPPED' "inputs: the definition's own code makes them"
expect_says 'FAILED tests/references/test_rmsnorm.py::TestWrong::test_numerical_correctness' ' passed'
! grep '^FAILED' "$work/out" | grep -vq '::TestWrong::' || fail "a test of a right reference fails"
