#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# An unusable workload line gives one invalid case, whose message has file, line and column. The other lines and
# definitions are still verified.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
"$python" -I -S - <<'END'
import json

path = "workloads/rmsnorm/tiny_norm.jsonl"
lines = open(path).read().splitlines()
number = 0


def line(**changes):
    global number
    number += 1
    inputs = {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
    inputs.update(changes.pop("inputs", {}))
    inputs = {key: value for key, value in inputs.items() if value is not None}
    axes = changes.pop("axes", {"batch_size": 2})
    uuid = changes.pop("uuid", f"33333333-0000-4000-8000-{number:012}")
    workload = {"uuid": uuid, "axes": axes, "inputs": inputs}
    return json.dumps({"definition": "tiny_norm", "workload": workload, "solution": None, "evaluation": None})


lines += [
    '{"definition": "tiny_norm", "workload": {',
    line(axes={}),
    line(axes={"batch_size": 2, "seq_len": 3}),
    line(axes={"batch_size": 0}),
    line(axes={"batch_size": -1}),
    line(axes={"batch_size": 1.5}),
    line(axes={"batch_size": 2**63}),
    line(axes={"batch_size": "two"}),
    line(inputs={"weight": None}),
    line(inputs={"bias": {"type": "random"}}),
    line(inputs={"weight": {"type": "sorted"}}),
    line(inputs={"weight": {"type": "scalar", "value": 3}}),
    line(uuid="11111111-0000-4000-8000-000000000001"),
    '{"definition": "tiny_gemm", "workload": {"uuid": "x", "axes": {"batch_size": 1}, "inputs": {}}}',
    "",
    line(axes={"batch_size": 11}),
]
open(path, "w").write("\n".join(lines) + "\n")
END
verify
expect_exit 2
expect_status tiny_norm invalid
expect_status tiny_gemm passed
expect "[case['status'] for case in d['tiny_norm']['cases']].count('invalid') == 13"
expect "all(case['status'] in ('passed', 'invalid') for case in d['tiny_norm']['cases'])"
expect "any(case['axes'].get('batch_size') == 11 and case['status'] == 'passed' for case in d['tiny_norm']['cases'])"
# A case with an empty batch is valid, but its verdict is marked as weak, because without elements it proves nothing
# about the reference.
expect "[case['weak'] for case in d['tiny_norm']['cases'] if case['axes'].get('batch_size') == 0] == [True]"
for line in 3 4 5 7 8 9 10 11 12 13 14 15 16; do
	expect "any((m or '').startswith('workloads/rmsnorm/tiny_norm.jsonl:$line:') for m in all_of('tiny_norm', 'message'))"
done
for word in batch_size seq_len weight bias sorted 9223372036854775808; do
	expect "any('$word' in (m or '') for m in all_of('tiny_norm', 'message'))"
done
