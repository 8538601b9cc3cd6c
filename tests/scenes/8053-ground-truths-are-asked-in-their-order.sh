#!/bin/sh
# 8053: generated tests ask FlashInfer, SGLang, FLA, PyTorch and reftest's kernels, in this order: the first that is there
# decides, a wrong one fails the test, one that breaks does too, one that refuses is passed over with its reason, and all
# that are there must agree.
. "$(dirname "$0")/scene.sh"
pytest_is_here
given rmsnorm_h128
run generate
expect_exit 0
step="order.py"
(
	unset REFTEST_KERNELS
	PATH=$(echo "$PATH" | sed "s|$build:||")
	"$python" "$top/tests/generated/order.py" tests/references "$top/build"
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'in order'
