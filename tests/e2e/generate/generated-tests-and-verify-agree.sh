#!/bin/sh
# `reftest verify` and the generated tests give the same results for correct references, for wrong references, and for
# references that pass with a finding. The references differ in the values that they return, in the state that they keep
# between calls, in the tensors to which they write, and in the number that they use for an absent scalar.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
step="references under verify and under pytest"
(
	REFTEST_KERNELS=$top/build
	export REFTEST_KERNELS
	"$python" "$top/tests/generated_tests/agree.py" "$build"
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'definitions get the same result from both'
