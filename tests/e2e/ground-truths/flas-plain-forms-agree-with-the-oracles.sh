#!/bin/sh
# The oracles of linear attention agree with flash-linear-attention (FLA), within the bounds of each definition. They
# are compared with FLA's plain PyTorch implementations (recurrent, chunked, parallel), including those of the gates.
# FLA tests its own kernels against these implementations. If FLA gets gates and betas that are wrong by 2 %, no
# definition agrees.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
folder=
for site in "$top"/.venv-tests/lib/python3*/site-packages; do
	[ ! -f "$site/fla/ops/gla/naive.py" ] || folder=$site
done
if [ -z "$folder" ]; then
	step="fla-core is not in .venv-tests; tools/setup.sh --tests installs it"
	exit 77
fi
forms() { # WORD…
	step="tests/fla_plain_forms/fla.py $*"
	"$python" "$top/tests/fla_plain_forms/fla.py" "$top/build/libreftest_kernels.so" "$folder" "$@" \
		>"$work/out" 2>"$work/err" && status=0 || status=$?
}
forms
expect_exit 0
expect_says "1..12" "ok 12 - kda_recurrent_qk_l2norm_v_first_h2_hv4_d64"
forms --plant
expect_exit 1
step="a definition that FLA's forms agree with though they are 2 % off"
! grep '^ok ' "$work/out" || fail "$step"
expect_says "not ok 12"
