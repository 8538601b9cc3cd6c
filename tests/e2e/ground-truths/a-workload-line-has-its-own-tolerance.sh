#!/bin/sh
# A workload line in the format of SOL-ExecBench may have a tolerance. If the reference is compared with the dataset's
# own ground truth, this tolerance is the bound of the case. The tolerance consists of an absolute and a relative error,
# the fraction of elements that must be within these errors, and the maximum error of any element. The line's tolerance
# never changes the bounds of an op family. The definition's own tolerance takes precedence over the line's tolerance.
. "$(dirname "$0")/../harness.sh"
mkdir -p definitions/row_energy truths/row_energy workloads/row_energy
"$python" -I -S - <<'P'
import json

def define(name, **more):
    json.dump({"name": name, "op_type": "row_energy", "description": "",
               "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
               "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
               "outputs": {"y": {"shape": ["n"], "dtype": "float32"}}, **more,
               "reference": "import torch\n\n\ndef run(x):\n    y = (x * x).sum(-1)\n    y[0] += 0.009\n    return y\n"},
              open(f"definitions/row_energy/{name}.json", "w"))
    open(f"truths/row_energy/{name}.py", "w").write("import torch\n\n\ndef run(x):\n    return torch.einsum('nw,nw->n', x, x)\n")
    with open(f"workloads/row_energy/{name}.jsonl", "w") as out:
        for uuid, tolerance in TOLERANCES.items():
            line = {"uuid": uuid, "axes": {"n": 8}, "inputs": {"x": {"type": "random"}}}
            out.write(json.dumps({**line, "tolerance": tolerance} if tolerance is not None else line) + "\n")

TOLERANCES = {"none": None, "wide": {"max_atol": 0.5}, "narrow": {"max_atol": 1e-4, "max_rtol": 0, "required_matched_ratio": 1},
              "part": {"max_atol": 1e-4, "max_rtol": 0, "required_matched_ratio": 0.8},
              "capped": {"max_atol": 1e-4, "max_rtol": 0, "required_matched_ratio": 0.8, "max_error_cap": 0.005},
              "high": {"max_atol": 1e-4, "max_rtol": 0, "required_matched_ratio": 0.8, "max_error_cap": 0.05},
              "zero": {"max_atol": 0.5, "max_error_cap": 0}}
define("by_line")
define("by_definition", tolerance={"atol": 1e-6, "rtol": 1e-6, "hit_ratio": 1})
P
given tiny_norm
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-2'
echo '{"uuid": "wide", "axes": {"batch_size": 4}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}, "tolerance": {"max_atol": 1000}}' >workloads/rmsnorm/tiny_norm.jsonl
verify
expect "{i: x['status'] for (n, i), x in c.items() if n == 'by_line'} == {'small:n=4': 'failed', 'workload:none': 'failed',
	'workload:wide': 'passed', 'workload:narrow': 'failed', 'workload:part': 'passed', 'workload:capped': 'failed',
	'workload:high': 'passed', 'workload:zero': 'failed'}"
expect "'an element differs by 0.009' in c['by_line', 'workload:capped']['message'] and 'more than the 0.005 that the workload allows' in c['by_line', 'workload:capped']['message']"
expect "c['by_line', 'workload:wide']['outputs'][0]['atol'] == 0.5"
expect "{x['status'] for (n, i), x in c.items() if n == 'by_definition'} == {'failed'}"
expect "c['tiny_norm', 'workload:wide']['status'] == 'failed'"

# A verdict depends on the tolerance, so the line with the changed tolerance runs again. The other cases run again, too,
# because a ground truth of the dataset may keep something from one case to the next.
verify by_line
expect_ran 0
edit workloads/row_energy/by_line.jsonl '"max_error_cap": 0.05' '"max_error_cap": 0.001'
verify by_line
expect_ran 8
expect "c['by_line', 'workload:high']['status'] == 'failed'"
