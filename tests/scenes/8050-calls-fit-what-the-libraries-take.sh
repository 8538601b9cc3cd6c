#!/bin/sh
# 8050: every call that generated tests make into FlashInfer, SGLang and flash-linear-attention binds to the parameters that
# were recorded of their releases; a keyword or a name that a library has not is found.
. "$(dirname "$0")/scene.sh"
pytest_is_here
cp -r "$top/definitions" .
run generate
expect_exit 0
fits() {
	step="signatures"
	REFTEST_KERNELS=/nonexistent "$python" "$top/tests/generated/signatures.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
says() {
	expectations=$((expectations + 1))
	grep -qE "$1" "$work/out" || fail "$step: it does not say '$1'"
}
fits
expect_exit 0
says ' 0 wrong'
[ "$build" = "$top/build" ] || exit 0 # only what generates differs in another build
rm -r definitions/[!nr]* definitions/rope
edit tests/references/test_rmsnorm.py 'norm.rmsnorm, norm.fused' 'norm.rmsnorm_, norm.fused'
edit tests/references/test_rmsnorm.py 'None, eps=epsilon' 'None, epsilon=epsilon'
find tests/references -name 'test_*.py' ! -name test_rmsnorm.py -delete
fits
expect_exit 1
says 'never calls anything: .*no attribute .rmsnorm_'
says "rmsnorm_fla of .*unexpected keyword argument 'epsilon'"
