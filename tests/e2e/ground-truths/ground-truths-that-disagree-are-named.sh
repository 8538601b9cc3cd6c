#!/bin/sh
# If ground truths disagree, the message names the one that differs from all others, and the case fails whatever the
# reference computes. If all ground truths agree and a reference differs from them, the reference is wrong. A ground
# truth is coarse if its own error bound is larger than that of the tolerance rule. A verdict never depends on a coarse
# ground truth alone.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted" PLANTED=right PLANTED_TOO=right
message_of() { echo "d['$1']['cases'][0]['message']"; }

# `planted NAME WIDTH`: writes a definition whose name tells the planted providers how to behave. Each definition has a
# different width, because equal definitions would share one run of a case.
planted() {
	cp definitions/gemm/tiny_gemm.json "definitions/gemm/$1.json"
	edit "definitions/gemm/$1.json" '"name": "tiny_gemm"' "\"name\": \"$1\""
	edit "definitions/gemm/$1.json" '"value": 16' "\"value\": $2"
}

planted tiny_gemm__wrong__right 17
planted tiny_gemm__wrong__nan 18
planted tiny_gemm__nan_coarse__right 19
planted tiny_gemm__writes_inputs__right 20
verify --ground-truth all
expect_exit 1
expect_status tiny_gemm passed
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer', 'flashinfer_fa3', 'torch', 'builtin'] for n in d for case in d[n]['cases'])"

# If a provider writes to its inputs, the next provider still gets the original values.
expect_status tiny_gemm__writes_inputs__right passed
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

# One ground truth differs from the three others.
expect_status tiny_gemm__wrong__right failed ground_truths_disagree
expect "$(message_of tiny_gemm__wrong__right).startswith('flashinfer is the outlier; the reference agrees with flashinfer_fa3 and torch and builtin')"

# Two ground truths differ from all others and from each other. NaN agrees with nothing.
expect_status tiny_gemm__wrong__nan failed ground_truths_disagree
expect "'no single ground truth is the outlier: flashinfer and flashinfer_fa3 differ from the oracle on the CPU' in $(message_of tiny_gemm__wrong__nan)"
# An output with NaN has an infinite margin, which is worse than every other margin.
expect "[w.get('margin') for w in d['tiny_gemm__wrong__nan']['cases'][0]['witnesses']][1:] == ['inf', 0.0, None]"

# The error bound of a coarse ground truth is computed from the magnitudes of its outputs, and a NaN has no magnitude.
# An output with NaN agrees with nothing, and the judge does not crash.
expect_status tiny_gemm__nan_coarse__right failed ground_truths_disagree
expect "$(message_of tiny_gemm__nan_coarse__right).startswith('flashinfer is the outlier')"
verify --ground-truth all tiny_gemm
expect_exit 0
expect_ran 0
rm definitions/gemm/tiny_gemm__*

# If builtin and another ground truth differ on a CPU, the message names the other ground truth as the wrong one,
# because on a CPU builtin is the exact oracle. A wrong reference differs from both ground truths.
mkdir "$work/one" && cp "$top/tests/data/providers/planted/flashinfer.py" "$work/one/"
edit "$work/one/flashinfer.py" '    Table("flashinfer_fa3", (Need(("torch",), "torch"),), {"gemm": deed(1, "PLANTED_TOO")}),' ''
REFTEST_PROVIDERS="$work/one"
planted tiny_gemm__wrong 17
planted tiny_gemm__right 18
edit definitions/gemm/tiny_gemm__right.json 'B.float().T' 'B.float().T * 1.25'
verify --ground-truth all
expect_exit 1
expect_status tiny_gemm passed
expect_status tiny_gemm__wrong failed ground_truths_disagree
expect "$(message_of tiny_gemm__wrong).startswith('flashinfer is the outlier, by comparison with the oracle')"
expect_status tiny_gemm__right failed numeric
expect "'against flashinfer' in $(message_of tiny_gemm__right) and 'against builtin' in $(message_of tiny_gemm__right)"
rm definitions/gemm/tiny_gemm__*

# A coarse ground truth that is correct within its own bounds is used, but is not enough for a verdict. Therefore
# builtin is called as well.
planted tiny_gemm__coarse 17
planted tiny_gemm__right 18
verify --ground-truth flashinfer,builtin
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer', 'builtin'] for case in d['tiny_gemm__coarse']['cases'])"
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer'] for case in d['tiny_gemm__right']['cases'])"
expect_cached 0

# If the version of a provider's table changes, verdicts of the old version do not count.
verify --ground-truth flashinfer tiny_gemm__right
expect_ran 0
echo '# edited' >>"$work/one/flashinfer.py"
verify --ground-truth flashinfer tiny_gemm__right
expect "s['cases_run'] > 0"
verify --ground-truth flashinfer tiny_gemm__right
expect_ran 0
