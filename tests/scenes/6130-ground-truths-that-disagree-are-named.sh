#!/bin/sh
# 6130: when ground truths disagree, who stands alone is named, and the case fails however the reference does; a reference
# that stands against all of them is itself wrong; one that is coarser than the rule does not decide alone.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted" PLANTED PLANTED_TOO
message="d['tiny_gemm']['cases'][0]['message']"

PLANTED=right PLANTED_TOO=right
verify --ground-truth all
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer', 'flashinfer_fa3', 'torch', 'builtin'] for case in d['tiny_gemm']['cases'])"
verify --ground-truth all
expect_ran 0

# One against three.
PLANTED=wrong
verify --ground-truth all --force
expect_exit 1
expect_status tiny_gemm failed ground_truths_disagree
expect "$message.startswith('flashinfer stands alone; the reference agrees with flashinfer_fa3 and torch and builtin')"

# Two that agree in nothing with the others, nor with each other; a NaN is no agreement.
PLANTED_TOO=nan
verify --ground-truth all --force
expect_status tiny_gemm failed ground_truths_disagree
expect "'no single one stands alone' in $message"

# What is NaN has no size for its noise to be part of: it is no agreement either, and no judge breaks on it.
PLANTED=nan_coarse PLANTED_TOO=right
verify --ground-truth all --force
expect_status tiny_gemm failed ground_truths_disagree
expect "$message.startswith('flashinfer stands alone')"

# One against one: on a CPU builtin is the oracle, whose word counts.
rm -rf "$work/one" && mkdir "$work/one" && cp "$top/tests/data/providers/planted/flashinfer.py" "$work/one/"
edit "$work/one/flashinfer.py" '    Table("flashinfer_fa3", (Need(("torch",), "torch"),), {"gemm": deed("PLANTED_TOO")}),' ''
REFTEST_PROVIDERS="$work/one"
verify --ground-truth all --force
expect_status tiny_gemm failed ground_truths_disagree
expect "$message.startswith('flashinfer stands alone against the oracle')"

# Coarser than the rule, and within what it says it is good for: heard, and builtin is asked too.
PLANTED=coarse
verify --ground-truth flashinfer,builtin --force
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer', 'builtin'] for case in d['tiny_gemm']['cases'])"
PLANTED=right
verify --ground-truth flashinfer,builtin --force
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer'] for case in d['tiny_gemm']['cases'])"

# A wrong reference stands against them all.
edit definitions/gemm/tiny_gemm.json 'B.float().T' 'B.float().T * 1.25'
verify --ground-truth all
expect_exit 1
expect_status tiny_gemm failed numeric
expect "'against flashinfer' in $message and 'against builtin' in $message"

# Another version of a table is another ground truth.
verify --ground-truth flashinfer
expect "s['cases_run'] > 0"
verify --ground-truth flashinfer
expect_ran 0
echo '# edited' >>"$work/one/flashinfer.py"
verify --ground-truth flashinfer
expect "s['cases_run'] > 0"
