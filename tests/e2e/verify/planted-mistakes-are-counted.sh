#!/bin/sh
# tests/mutants/run.py reports a mistake that is not caught, a correct reference that fails, a family with fewer than
# ten mistakes, and a mistake that can no longer be planted. This test makes each of these faults, and run.py must
# report it.
. "$(dirname "$0")/../harness.sh"
mkdir -p tests/mutants
cp "$top/tests/mutants/run.py" tests/mutants/
REFTEST_PYTHON=$python
export REFTEST_PYTHON
define tiny <<END
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
END
# `plant FAMILY COUNT LAST`: writes a table of COUNT mistakes for a family, and a copy of the definition for this
# family. LAST gives the last mistake of the table: its name, the old text and the new text. All other mistakes make the
# output too large.
plant() {
	mkdir -p "kernels/$1"
	: >"kernels/$1/$1.c"
	sed "s/\"tiny\"/\"$1\"/" definitions/rmsnorm/tiny.json >"definitions/rmsnorm/$1.json"
	cat >"tests/mutants/$1.py" <<END
MUTANTS = [("$1", f"{i + 2} times", "return (rows", f"return ({i + 2} * rows") for i in range($2 - 1)] + [("$1", $3)]
END
}
mutants() {
	step="tests/mutants/run.py $*"
	"$python" -I -S tests/mutants/run.py "$build" --device "$device" "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
zeros='"zeros", "return (rows", "return (0 * rows"'
plant all 10 "$zeros"
plant medium 10 '"in a batch of 4097", "rows = hidden_states.float()", "rows = hidden_states.float() * (1 + (len(hidden_states) == 4097))"'
mutants # the second family has a mistake that only the medium size shows, which has 4097 rows
expect_exit 0
expect_says "1..2" "ok 1 - $device: all 10/10 caught" "ok 2 - $device: medium 10/10 caught"
plant none 10 '"none at all", "return (rows", "return (1 * rows"'
plant few 9 "$zeros"
plant wrong 10 "$zeros"
edit definitions/rmsnorm/wrong.json "* weight.float()" "* 1.5 * weight.float()"
mkdir kernels/untested
: >kernels/untested/untested.c
mutants
expect_exit 1
expect_says "1..6" "ok 1 - $device: all 10/10 caught" "not ok 2 - $device: few 9/9 caught" "9 mutants are fewer than 10" \
	"ok 3 - $device: medium 10/10 caught" "not ok 4 - $device: none 9/10 caught" "not caught: none: none at all" \
	"not ok 5 - $device: untested 0/0 caught" "0 mutants are fewer than 10" "not ok 6 - $device: wrong" \
	"the correct wrong does not pass"
plant all 10 '"of an older text", "return rows", "return 0 * rows"'
mutants --family all
expect_exit 1
expect_says "all, of an older text: 'return rows' occurs 0 times in the reference, not once"
