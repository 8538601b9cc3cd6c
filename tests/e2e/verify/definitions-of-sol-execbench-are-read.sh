#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# `verify` reads definitions in the form of SOL-ExecBench. Definitions in this form have no op_type, so the name of the
# folder is the op_type. The workload lines of these definitions have no member "workload", and may have a tolerance. A
# function of the reference may make the inputs.
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
for folder in "rmsnorm", "gemm", "problems":
    os.makedirs(f"workloads/{folder}")
with open("workloads/rmsnorm/lines.jsonl", "w") as out:
    for uuid, kind, tolerance in ("random", "random", {"max_atol": 1}), ("made", "custom", {}), ("misspelt", "random", {"atol": 1}):
        inputs = {"hidden_states": {"type": kind}, "weight": {"type": "random"}}
        line = {"uuid": uuid, "axes": {"batch_size": 3}, "inputs": inputs, "tolerance": tolerance}
        out.write(json.dumps(line) + "\n")

# Axes are computed from other axes, in any order, and shapes contain numbers and expressions. The number of rows of the
# GEMM is the product of the axes `batch` and `length`, which occur in no shape of a tensor. The second definition has
# no op family.
PRODUCT = {"batch": {"type": "var"}, "width": {"type": "expr", "expression": "heads * 8"}, "length": {"type": "var"},
           "rows": {"type": "expr", "expression": "batch * length"}, "heads": {"type": "const", "value": 8}}
MATRIX = "def run(A, B):\n    return A @ B.T\n"
half = lambda *shape: {"shape": list(shape), "dtype": "float16"}
write("gemm", "product", axes=PRODUCT, description="C = A B^T.", inputs={"A": half("rows", "width"), "B": half("32", "width")},
      outputs={"C": half("rows", "32")}, reference=MATRIX)
write("problems", "blocks", axes={"rows": {"type": "var"}, "blocks": {"type": "expr", "expression": "rows // 16"}},
      inputs={"x": half("rows", "1")}, outputs={"y": half("blocks", "rows + 1 - rows % 2", "2 ** 3")},
      reference="def run(x):\n    n = len(x)\n    return x.sum() * x.new_ones(n // 16, n + 1 - n % 2, 8)\n")
for folder, name, axes in ("gemm", "product", {"batch": 3, "length": 5}), ("problems", "blocks", {"rows": 48, "blocks": 4}):
    with open(f"workloads/{folder}/{name}.jsonl", "w") as out:
        for uuid, more in ("computed", {}), ("given", {"rows": 15}):
            inputs = {"x": {"type": "random"}} if name == "blocks" else {"A": {"type": "random"}, "B": {"type": "random"}}
            out.write(json.dumps({"uuid": uuid, "axes": axes | more, "inputs": inputs}) + "\n")
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
expect_status product passed
expect "[case['axes'] for case in d['product']['cases']][-1] == {'batch': 3, 'length': 5, 'rows': 15}"
expect "all(case['axes']['rows'] == case['axes']['batch'] * case['axes']['length'] for case in d['product']['cases'])"
expect "max(case['axes']['rows'] for case in d['product']['cases']) > 15"
blocks="{case['id']: case for case in d['blocks']['cases']}"
generic="$blocks['small:rows=16,blocks=1,rows + 1 - rows % 2=17']"
expect "($generic['status'], $generic['reason']) == ('checked', 'no_ground_truth')"
expect "'expected the axis blocks to be 3, the value of rows // 16, found 4' in $blocks['workload:computed']['message']"
# If an expression changes, the definition counts as changed.
edit definitions/gemm/product.json 'heads * 8' 'heads * 4'
verify product
expect_ran 3 # and one equal case
run explain plain --device "$device"
expect_says 'hf_id = example/model'
# The name of the folder is the op_type. If this op_type is also written into the file, the definition counts as
# unchanged.
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
expect_says 'SKIPPED' "the definition's own code makes the inputs"
expect_says 'FAILED tests/references/test_rmsnorm.py::TestWrong::test_numerical_correctness' ' passed'
expect_says 'ValueError' 'axis blocks is 4, not 3'
! grep '^FAILED' "$work/out" | grep -vq '::TestWrong::\|::TestBlocks::test_numerical_correctness\[workload:' || fail "a test of a right reference fails"
