#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build. Two Python texts with the same lexical normal
# form have the same syntax tree. The test checks this with Python's own parser for thousands of variants of source
# texts.
. "$(dirname "$0")/../harness.sh"
step="tests/normal_forms/check.py"
"$python" "$top/tests/normal_forms/check.py" "$build/tests/unit/test_python_normal_form" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
