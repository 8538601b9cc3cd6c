#!/bin/sh
# The output of `verify --junit FILE` is valid XML with correct counts. `--format github` annotates at most ten errors at
# the lines of the references, and no text of a dataset can start a workflow command.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
define wrong <<'PYTHON'
def run(hidden_states, weight):
    return hidden_states * 0 + 7
PYTHON
define raises <<'PYTHON'
def run(hidden_states, weight):
    raise ValueError("<&]]> \x01\n::error::injected")
PYTHON
echo '{' >definitions/rmsnorm/broken.json
run verify --format github --junit "$work/junit.xml" --device "$device" --sizes small --no-workloads --jobs 1
expect_exit 2
expect_says '::error file=definitions/rmsnorm/broken.json,line=2,' '::error file=definitions/rmsnorm/wrong.json,line='
line=$(grep -n '"reference"' definitions/rmsnorm/wrong.json | cut -d : -f 1)
expect_says "::error file=definitions/rmsnorm/wrong.json,line=$line,title=rmsnorm/wrong%3A failed"
expectations=$((expectations + 1))
! grep -q '^::error::injected' "$work/out" || fail "a reference's text became a command"
"$python" -I -S - "$work/junit.xml" <<'PYTHON' >"$work/python" 2>&1 || fail "junit: $(tail -n 1 "$work/python")"
import sys
import xml.etree.ElementTree

root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
suites = {suite.get("name"): suite for suite in root}
count = lambda name, tag: sum(1 for case in suites[name] if case.find(tag) is not None)
assert count("rmsnorm/wrong", "failure") == len(suites["rmsnorm/wrong"]) == int(suites["rmsnorm/wrong"].get("failures"))
assert count("rmsnorm/raises", "error") == len(suites["rmsnorm/raises"]) == int(suites["rmsnorm/raises"].get("errors"))
assert count("rmsnorm/broken", "error") == 1
assert all(len(case) == 0 for case in suites["rmsnorm/tiny_norm"]) and len(suites["rmsnorm/tiny_norm"]) > 0
for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
    assert int(root.get(kind)) == len(list(root.iter(tag))), kind
assert int(root.get("tests")) == len(list(root.iter("testcase")))
PYTHON

# A case without a verdict counts as skipped, and not as passed.
run verify tiny_norm --cached-only --force --junit "$work/junit.xml"
expect_exit 2
run verify tiny_norm --cached-only --sizes medium --no-workloads --device "$device" --junit "$work/junit.xml"
expect_exit 3
grep -q 'skipped="[1-9]' "$work/junit.xml" || fail "a case without a verdict is not skipped"

# If there are more than ten errors, the tenth annotation says how many there are.
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo '{' >"definitions/rmsnorm/broken$i.json"; done
run verify --op-type rmsnorm --cached-only --format github --device "$device" --sizes small --no-workloads
expectations=$((expectations + 1))
[ "$(grep -c '^::error ' "$work/out")" = 10 ] || fail "not ten errors"
expect_says 'more definitions are not listed here'
