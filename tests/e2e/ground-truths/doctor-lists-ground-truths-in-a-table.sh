#!/bin/sh
# Builds the table of other libraries' ground truths from a recorded run of verify on a GPU, and compares it with the
# expected table. If a library computed no outputs for a case, the case does not count as one in which this library
# agrees with the other ground truths. The table gives the reason.
. "$(dirname "$0")/../harness.sh"
step=bench/providers.py
data=$top/tests/data/providers
"$python" "$top/bench/providers.py" "$data/verify.json" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
diff "$data/table.md" "$work/out" >"$work/err" || fail "$step: the table differs"
expect_says '| gqa_paged | flashinfer_fa3 |' '6 of 7' 'it takes one number a head'
given tiny_gemm
run verify --device cpu --sizes small --no-workloads --ground-truth all --format json
expect_exit 0
expect "r['ground_truths']['families']['gemm']['torch'] is None and 'builtin' not in [w['name'] for case in d['tiny_gemm']['cases'] for w in case['witnesses'] if 'margin' in w]"
mv "$work/out" "$work/verify.json"
"$python" "$top/bench/providers.py" "$work/verify.json" >"$work/out"
expect_says '| gemm | torch | ' '- flashinfer_fa3: '
