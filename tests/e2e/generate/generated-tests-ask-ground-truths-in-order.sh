#!/bin/sh
# Generated tests call FlashInfer, SGLang, FLA, PyTorch and reftest's kernels as ground truths, in this order, and
# compare the reference with the first one that is available. If that ground truth computes a wrong output or raises an
# exception, the test fails. A ground truth that does not support the case is skipped with its reason, and the next one
# is used. Another generated test checks that all available ground truths agree.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given rmsnorm_h128
run generate
expect_exit 0
step="order.py"
(
	unset REFTEST_KERNELS
	PATH=$(echo "$PATH" | sed "s|$build:||")
	"$python" "$top/tests/generated_tests/order.py" tests/references "$top/build"
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'in order'
