#!/bin/sh
# References whose text could change their process, or reach beyond their inputs and outputs, get a process of their own;
# among them are the hostile references. What a reference could leave behind in its process is found.
. "$(dirname "$0")/../harness.sh"
step=tests/isolation.py
"$python" "$top/tests/isolation.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says 'own: assignment to a module' 'kept: a norm' 'hostile: patch_builtins' 'found: a builtin'
expect_silence_about 'not ok'
expect_says 'show no freed memory'

# In other orders, and with runners that are kept, all verdicts are the same. A hundred orders of all starter definitions:
# tests/isolation_orders.py BUILD.
step=tests/isolation_orders.py
"$python" "$top/tests/isolation_orders.py" "$build" --orders 2 --op-type rmsnorm --op-type gemm >"$work/out" 2>"$work/err" &&
	status=0 || status=$?
expect_exit 0
expect_says '2 orders, 0 verdicts differ'
