#!/bin/sh
# 8000: in every op family, generated pytest files pass for the right references and fail for planted mistakes. Draws need
# the rows of the medium size to show a wrong distribution. Of those that write to their inputs: one that may not, and those
# that may, but leave something else there than the operation does.
. "$(dirname "$0")/scene.sh"
pytest_is_here
step="mutants under pytest"
count=1
(
	REFTEST_KERNELS=$top/build
	export REFTEST_KERNELS
	"$python" "$top/tests/generated/plant.py" "$build" --count "$count" \
		--also 'rmsnorm:overwrites' --also 'page:scribbles' --also 'mamba_ssu:states that it gets' \
		--also 'gdn:intermediate states not kept|other intermediate states' -- --device "${REFTEST_DEVICE:-cpu}" \
		-k "small or shape or kept or dtype or determinism or edge or unchanged or (Sampling and numerical and medium)"
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
