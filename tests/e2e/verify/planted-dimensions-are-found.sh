#!/bin/sh
# Wrong lengths of axes and wrong degrees, planted into the starter definitions, are all found, and no definition without a
# mistake fails.
. "$(dirname "$0")/../harness.sh"
expectations=1
"$python" "$top/tests/mutants/dimensions.py" "$build" >"$work/out" || fail "a mistake was not found, or there is a false alarm"
