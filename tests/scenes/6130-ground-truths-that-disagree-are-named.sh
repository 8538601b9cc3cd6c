#!/bin/sh
# 6130: when ground truths disagree, who stands alone is named, and the case fails however the reference does; a reference
# that stands against all of them is itself wrong; one that is coarser than the rule does not decide alone.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted" PLANTED=right PLANTED_TOO=right
message_of() { echo "d['$1']['cases'][0]['message']"; }

# planted NAME WIDTH: another definition, after whose name the planted providers do their deeds; of another width, for equal
# ones would be one case
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

# What one leaves in the inputs that it was lent is seen by nobody who is asked after it.
expect_status tiny_gemm__writes_inputs__right passed
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

# One against three.
expect_status tiny_gemm__wrong__right failed ground_truths_disagree
expect "$(message_of tiny_gemm__wrong__right).startswith('flashinfer stands alone; the reference agrees with flashinfer_fa3 and torch and builtin')"

# Two that agree in nothing with the others, nor with each other; a NaN is no agreement.
expect_status tiny_gemm__wrong__nan failed ground_truths_disagree
expect "'no single one stands alone: flashinfer and flashinfer_fa3 differ from the oracle on the CPU' in $(message_of tiny_gemm__wrong__nan)"
expect "[w.get('margin') for w in d['tiny_gemm__wrong__nan']['cases'][0]['witnesses']][1:] == ['inf', 0.0, None]" # of NaN: as bad as can be

# What is NaN has no size for its noise to be part of: it is no agreement either, and no judge breaks on it.
expect_status tiny_gemm__nan_coarse__right failed ground_truths_disagree
expect "$(message_of tiny_gemm__nan_coarse__right).startswith('flashinfer stands alone')"
verify --ground-truth all tiny_gemm
expect_exit 0
expect_ran 0
rm definitions/gemm/tiny_gemm__*

# One against one: on a CPU builtin is the oracle, whose word counts. A wrong reference stands against them all.
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
expect "$(message_of tiny_gemm__wrong).startswith('flashinfer stands alone against the oracle')"
expect_status tiny_gemm__right failed numeric
expect "'against flashinfer' in $(message_of tiny_gemm__right) and 'against builtin' in $(message_of tiny_gemm__right)"
rm definitions/gemm/tiny_gemm__*

# Coarser than the rule, and within what it says it is good for: heard, and builtin is asked too.
planted tiny_gemm__coarse 17
planted tiny_gemm__right 18
verify --ground-truth flashinfer,builtin
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer', 'builtin'] for case in d['tiny_gemm__coarse']['cases'])"
expect "all([w['name'] for w in case['witnesses']] == ['flashinfer'] for case in d['tiny_gemm__right']['cases'])"
expect_cached 0

# Another version of a table is another ground truth.
verify --ground-truth flashinfer tiny_gemm__right
expect_ran 0
echo '# edited' >>"$work/one/flashinfer.py"
verify --ground-truth flashinfer tiny_gemm__right
expect "s['cases_run'] > 0"
verify --ground-truth flashinfer tiny_gemm__right
expect_ran 0
