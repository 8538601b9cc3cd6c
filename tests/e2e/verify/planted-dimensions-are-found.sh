#!/bin/sh
# Wrong lengths of axes and wrong degrees of parallelism are planted into the starter definitions. reftest finds all of
# them, and no definition without a mistake fails.
. "$(dirname "$0")/../harness.sh"
expectations=1
"$python" "$top/tests/mutants/dimensions.py" "$build" >"$work/out" || fail "a mistake was not found, or there is a false alarm"
