#!/bin/sh
# Each op family has a checklist of what a dataset should cover. `reftest coverage` counts the entries that the
# definitions and cases of the dataset cover, and names the entries that no definition covers. It runs nothing.
. "$(dirname "$0")/../harness.sh"
given rmsnorm_h128 fused_add_rmsnorm_h4096
run coverage
expect_exit 0
expect_says 'rmsnorm: 2 definitions, ' '  residual                  added: 1, none: 1' \
	'no definition of rmsnorm has an epsilon among its inputs' 'no definition of the op families activation, '
expect_silence_about 'no definition of rmsnorm adds a residual'

# If the definition that adds a residual is not selected, the entry for residuals is not covered.
run coverage -v rmsnorm_h128
expect_says 'no selected definition of rmsnorm adds a residual' '  rmsnorm/rmsnorm_h128, '
expect_silence_about 'op families'
run coverage --format json --no-workloads
expect_exit 0
"$python" -I -S - "$work/out" <<'P' || fail "the JSON is not what it should be"
import json, sys
r = json.load(open(sys.argv[1]))
of = {d["name"]: d for d in r["definitions"]}
assert of["fused_add_rmsnorm_h4096"]["axes"]["residual"] == ["added"], of
assert of["rmsnorm_h128"]["axes"]["rows"] == ["one", "several"], of
assert {"family": "rmsnorm", "axis": "epsilon", "value": "input",
        "message": "no definition of rmsnorm has an epsilon among its inputs"} in r["holes"], r["holes"]
P
run coverage nothing
expect_exit 2
echo '{' >definitions/rmsnorm/broken.json
run coverage
expect_exit 2
expect_says 'broken.json'
