#!/bin/sh
# A reference gets its own process if its source code could change the process, or access something other than its
# inputs and outputs. References in tests/hostile get their own process, except those that can harm no later reference.
# Anything that a reference leaves behind in its process is detected.
. "$(dirname "$0")/../harness.sh"
step=tests/isolation.py
"$python" "$top/tests/isolation.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'own: assignment to a module' 'kept: a norm' 'hostile: patch_builtins' 'found: a builtin'
expect_silence_about 'not ok'
expect_says 'show no freed memory'

# The verdicts do not depend on the order in which the definitions run, or on whether runners are kept for further
# references. (tests/isolation_orders.py BUILD runs a hundred orders of all starter definitions.)
step=tests/isolation_orders.py
"$python" "$top/tests/isolation_orders.py" "$build" --orders 2 --op-type rmsnorm --op-type gemm >"$work/out" 2>"$work/err" &&
	status=0 || status=$?
expect_exit 0
expect_says '2 orders, 0 verdicts differ'
