#!/bin/sh
# The calls in the tables of FlashInfer, SGLang and flash-linear-attention match the function signatures recorded from
# the released wheels.
. "$(dirname "$0")/../harness.sh"
step=tests/providers.py
"$python" "$top/tests/providers.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'every row calls its library' 'every call fits'
expect_silence_about 'not ok'
