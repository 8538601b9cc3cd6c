#!/bin/sh
# Verdicts that depend on an approval count only while the approval says the same: which reference was approved, and in
# which cases it had run. `reftest approve` itself ignores the approval, so it leaves no summary that counts later.
. "$(dirname "$0")/../harness.sh"
export REFTEST_PYTHON="$python"

# `write BODY`: defines an operation without a family. The workload has another size than the case `small`.
write() {
	mkdir -p definitions/toy workloads/toy
	"$python" -I -S - "$1" <<'P'
import json
import sys

rows = {"shape": ["rows", "n"], "dtype": "float32"}
with open("definitions/toy/toy.json", "w") as out:
    json.dump({"name": "toy", "op_type": "toy", "axes": {"rows": {"type": "var"}, "n": {"type": "const", "value": 16}},
               "inputs": {"x": rows}, "outputs": {"y": rows},
               "reference": f"import torch\n\n\ndef run(x):\n{sys.argv[1]}\n"}, out, indent=1)
with open("workloads/toy/toy.jsonl", "w") as out:
    workload = {"uuid": "u", "axes": {"rows": 7}, "inputs": {"x": {"type": "random"}}}
    json.dump({"definition": "toy", "workload": workload}, out)
P
}
approve() { run approve --device "$device" "$@" toy; }

# x * 3 is approved by mistake, and then the file of the approval gets its old content again.
write '    return x * 2'
approve --sizes small
expect_exit 0
cp -r approved "$work/of_two"
write '    return x * 3'
approve --sizes small
expect_exit 0
rm -r approved
cp -r "$work/of_two" approved
run verify --changed --device "$device" --sizes small --accept checked
expect_exit 1
expect_says 'differs from the approved reference'

# The approved reference has run with the workload only. In the case `small`, another reference writes to its input,
# which may be invalid for the operation, so this case is skipped, and the approval does not count.
rm -r approved
write '    return x * 2'
approve --sizes large --note 'read by ada'
expect_exit 0
write "$(printf '    y = x + x\n    if len(x) == 4:\n        x.zero_()\n    return y')"
verify --accept approved
expect_exit 3
expect_status toy checked
expect "d['toy']['approval']['state'] == 'not_compared' and 'only 1 of 2 cases' in d['toy']['approval']['message']"
verify --accept approved
expect_ran 0
# The same code is approved with more cases. Its inputs are known to be valid, so now the case fails.
cp definitions/toy/toy.json "$work/writes.json"
write '    return x * 2'
approve --sizes small
expect_exit 0
expect_says 'approved  toy/toy: 2 cases'
grep -q 'read by ada' approved/toy/toy.json || fail "the note was lost"
approve --sizes large
expect_says 'unchanged toy/toy'
cp "$work/writes.json" definitions/toy/toy.json
verify --accept approved
expect_exit 1
expect_status toy failed mutated_input
