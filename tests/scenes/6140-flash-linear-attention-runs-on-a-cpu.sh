#!/bin/sh
# 6140: flash-linear-attention's plain PyTorch forms agree with the oracle in all forms of the gated delta net.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "on a GPU its Triton kernels run"
find='import importlib.util as u, sys; sys.exit(not (u.find_spec("fla") and u.find_spec("triton")))'
if ! "$python" -c "$find"; then
	for site in "$top"/.venv-tests/lib/python3*/site-packages; do
		[ -d "$site" ] && PYTHONPATH=$site
	done
	export PYTHONPATH
	"$python" -c "$find" || fail "there is no fla: tools/setup.sh --tests installs it"
fi
given gdn_decode_qk8_v16_d128_k_last gdn_mtp_qk2_v4_d128_k_last gdn_mtp_qk_l2norm_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last
verify --ground-truth all --timeout 300
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"
