#!/bin/sh
# 3005: the lexical normal form of Python is held to its word by Python's own parser, over thousands of variants.
. "$(dirname "$0")/scene.sh"
step="tests/forms/check.py"
"$python" "$top/tests/forms/check.py" "$build/tests/unit/test_python_form" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
