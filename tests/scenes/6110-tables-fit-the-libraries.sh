#!/bin/sh
# 6110: what the tables of FlashInfer, SGLang and flash-linear-attention call is there, and takes what it is given,
# according to the signatures that were recorded from the real wheels.
. "$(dirname "$0")/scene.sh"
step=tests/providers.py
"$python" "$top/tests/providers.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'every row calls its library' 'every call fits'
expect_silence_about 'not ok'
