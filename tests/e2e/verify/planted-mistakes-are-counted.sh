#!/bin/sh
# tests/mutants/run.py reports a mistake that is not caught, a correct reference that fails, a family with fewer than
# ten mistakes, and a mistake that can no longer be planted. If run.py did not report these, a run of it that passes
# would prove little.
. "$(dirname "$0")/../harness.sh"
mkdir -p tests/mutants kernels/rmsnorm
: >kernels/rmsnorm/rmsnorm.c
cp "$top/tests/mutants/run.py" tests/mutants/
REFTEST_PYTHON=$python
export REFTEST_PYTHON
define tiny <<END
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
END
plant() { # plant COUNT LAST: writes a table of COUNT visible mistakes, of which the Python tuple LAST is the last one
	cat >tests/mutants/rmsnorm.py <<END
MUTANTS = [("tiny", f"{i + 2} times", "return (rows", f"return ({i + 2} * rows") for i in range($1 - 1)] + [$2]
END
}
mutants() {
	step="tests/mutants/run.py"
	"$python" -I -S tests/mutants/run.py "$build" --device "$device" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
zeros='("tiny", "zeros", "return (rows", "return (0 * rows")'
plant 10 "$zeros"
mutants
expect_exit 0
expect_says "1..1" "ok 1 - $device: rmsnorm 10/10 caught"
plant 10 '("tiny", "none at all", "return (rows", "return (1 * rows")'
mutants
expect_exit 1
expect_says "not ok 1 - $device: rmsnorm 9/10 caught" "not caught: tiny: none at all"
plant 10 '("tiny", "in a batch of 513", "rows = hidden_states.float()", "rows = hidden_states.float() * (1 + (len(hidden_states) == 513))")'
mutants # at the medium size, which has 513 rows
expect_exit 0
plant 9 "$zeros"
mutants
expect_exit 1
expect_says "not ok 1 - $device: rmsnorm 9/9 caught" "9 mutants are fewer than 10"
plant 10 '("tiny", "of an older text", "return rows", "return 0 * rows")'
mutants
expect_exit 1
expect_says "tiny, of an older text: 'return rows' occurs 0 times in the reference, not once"
rm tests/mutants/rmsnorm.py
mutants
expect_exit 1
expect_says "not ok 1 - $device: rmsnorm 0/0 caught"
plant 10 "$zeros"
edit definitions/rmsnorm/tiny.json "* weight.float()" "* 1.5 * weight.float()"
mutants
expect_exit 1
expect_says "not ok 1" "the correct tiny does not pass"
