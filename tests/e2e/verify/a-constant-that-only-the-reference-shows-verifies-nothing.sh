#!/bin/sh
# If only the reference states the epsilon of a definition, the status of the definition is "checked" and not "passed".
# The status is also "checked" if the definition names a model that reftest does not know. --accept unattested accepts
# definitions whose epsilon is stated only in the reference.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
file=definitions/rmsnorm/tiny_norm.json
stated=$("$python" -I -S -c "import json; print(json.load(open('$file'))['description'])")

# describe TEXT TAG…: gives the definition this description and these tags
describe() {
	"$python" -I -S - "$file" "$@" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
d["description"], d["tags"] = sys.argv[2], sys.argv[3:]
json.dump(d, open(sys.argv[1], "w"), indent=2)
END
}

# expect_checked: expects that the last run reports tiny_norm as "checked", with the reason "unattested"
expect_checked() {
	expect "d['tiny_norm']['status'] == 'checked' and d['tiny_norm']['reason'] == 'unattested'"
	expect "all('the outputs of the reference imply this value' in c['message'] for c in d['tiny_norm']['cases'])"
}

step="neither a model nor an epsilon"
describe "A norm."
verify
expect_exit 3
expect_checked
verify # from the cache
expect_exit 3
expect_checked
verify --accept unattested
expect_exit 0
expect_checked
verify --accept checked
expect_exit 0
run verify --device "$device"
expect_exit 3
for accept in "" "--accept unattested"; do
	# shellcheck disable=SC2086 # a list of words
	run explain tiny_norm --device "$device" $accept
	[ "$status" = "$([ -n "$accept" ] && echo 0 || echo 3)" ] || fail "explain exits with $status"
done
run verify --sizes small --device "$device" --junit "$work/junit.xml"
expect_exit 3
grep -q 'cases checked: only the reference states the value of a constant' "$work/out" ||
	fail "the text gives another reason"
grep -q 'the outputs of the reference imply this value' "$work/junit.xml" || fail "JUnit gives another reason"

step="a model that reftest does not know"
describe "A norm." model:nobody-7b
verify --accept unattested
expect_exit 0
expect_checked
verify
expect_exit 3

step="an epsilon that the description states"
describe "$stated" model:nobody-7b
verify
expect_exit 0
expect "d['tiny_norm']['status'] == 'passed'"

step="another reason is not accepted"
rm -r definitions
mkdir -p definitions/nothing
cat >definitions/nothing/double.json <<'END'
{"name": "double", "op_type": "nothing", "axes": {"N": {"type": "var"}}, "constraints": [],
 "inputs": {"x": {"shape": ["N"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["N"], "dtype": "float32"}},
 "reference": "def run(x):\n    return x * 2\n"}
END
verify --accept unattested
expect_exit 3
expect "d['double']['reason'] == 'no_ground_truth'"
verify --accept checked
expect_exit 0
