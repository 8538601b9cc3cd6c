#!/bin/sh
# 8050: every call that generated tests make into FlashInfer, SGLang and flash-linear-attention binds to the parameters that
# were recorded of their releases; a keyword or a name that a library has not is found, whether a test changed or a library,
# and so is what was recorded for nobody.
. "$(dirname "$0")/scene.sh"
pytest_is_here
cp -r "$top/definitions" .
# What is called goes by what a definition takes, whatever it is called itself.
for pair in cascade/merge_state_in_place_h32_d128:with_mask cascade/merge_states_h8_d128:of_many \
	page/append_paged_mla_kv_cache_ckv512_kpe64_ps64:of_latents; do
	name=${pair%:*} other=${pair#*:}
	sed "s/\"${name#*/}\"/\"$other\"/" "definitions/$name.json" >"definitions/${name%/*}/$other.json"
	rm "definitions/$name.json"
done
run generate
expect_exit 0
fits() {
	step="signatures"
	REFTEST_KERNELS=/nonexistent "$python" "$top/tests/generated/signatures.py" "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
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
find tests/references -name 'test_*.py' ! -name test_rmsnorm.py -delete
PYTHONPATH="$top/tests:$PYTHONPATH" "$python" - "$work/record.json" <<'EOF'
import json
import sys

import recorded

record = recorded.changed(recorded.load(), "fla.modules.norm.layernorm:rms_norm", "eps", "epsilon")
record = recorded.changed(record, "flashinfer.norm:fused_add_rmsnorm")
record = recorded.one_more(record, "flashinfer_python", "flashinfer.norm:norm_of_none", "generated")
record = recorded.one_more(record, "flashinfer_python", "flashinfer.norm:norm_of_nobody")
with open(sys.argv[1], "w") as file:
    json.dump(record, file)
EOF
fits "$work/record.json"
expect_exit 1
says "rmsnorm_fla of .*unexpected keyword argument 'eps'"
says 'rmsnorm_flashinfer never calls anything: .*no attribute .fused_add_rmsnorm'
says '^nothing calls flashinfer.norm.norm_of_none$'
says '^nobody asks for flashinfer.norm:norm_of_nobody$'
edit tests/references/test_rmsnorm.py 'norm.rmsnorm, norm.fused' 'norm.rmsnorm_, norm.fused'
edit tests/references/test_rmsnorm.py 'None, eps=epsilon' 'None, epsilon=epsilon'
fits
expect_exit 1
says 'never calls anything: .*no attribute .rmsnorm_'
says "rmsnorm_fla of .*unexpected keyword argument 'epsilon'"
