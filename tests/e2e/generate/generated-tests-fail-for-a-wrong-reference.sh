#!/bin/sh
# In every op family, generated pytest files pass for correct references and fail for planted mistakes. A sampler that
# draws from a wrong distribution is found only at the medium size, because only this size has enough rows. Two mistakes
# are planted in references of operations that update an input: a write to a place that must stay unchanged, and a write
# of wrong values.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
step="mutants under pytest"
count=1
(
	REFTEST_KERNELS=$top/build
	export REFTEST_KERNELS
	"$python" "$top/tests/generated_tests/plant.py" "$build" --count "$count" \
		--also 'rmsnorm:overwrites' --also 'page:scribbles' --also 'mamba_ssu:states that it gets' \
		--also 'gdn:intermediate states not kept|other intermediate states' -- --device "${REFTEST_DEVICE:-cpu}" \
		-k "small or shape or kept or dtype or determinism or edge or unchanged or (Sampling and numerical and medium)"
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
