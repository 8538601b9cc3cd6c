#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# No case runs after an edit that no verdict depends on: a file is touched, copied or reindented, keys are reordered, or
# a description, tag, comment, docstring or definition name is changed.
. "$(dirname "$0")/../harness.sh"

# `rewrite FILE PYTHON`: loads the JSON file as `x`, executes the Python statement, and writes `x` back.
rewrite() {
	"$python" -I -S -c '
import json, sys
x = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(x, open(sys.argv[1], "w"), indent=1)' "$@"
}

norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm
verify
expect_exit 0
expect_cached 0
all=$(value "s['cases_run']")
expect "$all >= 5"
verify
expect_exit 0
expect_ran 0
expect_cached "$all"

find . -path ./.reftest -prune -o -type f -exec touch {} +
expect_nothing_to_do
cp $norm copy && mv copy $norm
cp -r blob copy && rm -r blob && mv copy blob
expect_nothing_to_do
rewrite $norm 'pass'
expect_nothing_to_do
rewrite $norm 'x = {key: x[key] for key in reversed(x)}'
expect_nothing_to_do
rewrite $norm 'x["description"] = "Nothing of what this said. Epsilon is 1e-6."'
expect_nothing_to_do
rewrite $norm 'x["tags"] = ["status:reviewed", "another"]'
expect_nothing_to_do
edit $norm '    mean_square = ' '    # a comment\n\n    mean_square = '
expect_nothing_to_do
edit $norm 'weight):\n' 'weight):\n    \"\"\"A docstring.\"\"\"\n'
expect_nothing_to_do
edit $norm '(normed * weight.float())' '( normed*weight.float() )'
expect_nothing_to_do

rewrite $norm 'x["name"] = "renamed_norm"'
mv $norm definitions/rmsnorm/renamed_norm.json
sed 's/"definition": *"tiny_norm"/"definition": "renamed_norm"/' workloads/rmsnorm/tiny_norm.jsonl \
	>workloads/rmsnorm/renamed_norm.jsonl
rm workloads/rmsnorm/tiny_norm.jsonl
expect_nothing_to_do
verify --cached-only
expect_exit 0
expect_cached "$all"
