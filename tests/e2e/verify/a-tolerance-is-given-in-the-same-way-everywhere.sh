#!/bin/sh
# verify, watch, generate and the generated tests accept --tolerance, for all dtypes or for one. A tolerance for one
# dtype takes precedence over a tolerance for all dtypes. `reftest tolerance` prints the bound of each output and the
# source of its numbers: the op family, the definition or an option.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the CPU suffices"
pytest_is_here
given tiny_gemm
# This reference returns results that are 1 % too large.
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.01 * torch.matmul'
verify
expect_exit 1
verify --tolerance 0.1
expect_exit 0
expect "all(o['atol'] == 0.1 and o['rtol'] == 0.1 and o['hit_ratio_needed'] == 1 for case in d['tiny_gemm']['cases'] for o in case['outputs'])"
verify --tolerance float16=1e-9 --tolerance 0.1
expect_exit 1
verify --tolerance float16=0.1,0.2,0.5 --tolerance 1e-9
expect_exit 0
expect "all(o['atol'] == 0.1 and o['rtol'] == 0.2 and o['hit_ratio_needed'] == 0.5 for case in d['tiny_gemm']['cases'] for o in case['outputs'])"
verify --tolerance bfloat16=0.1
expect_exit 1
verify --tolerance 0.1 --atol 1e-9 --rtol 1e-9
expect_exit 1
run watch --json --once --device "$device" --sizes small --jobs 1
expect_exit 1
run watch --json --once --device "$device" --sizes small --jobs 1 --tolerance 0.1
expect_exit 0

run generate
run_pytest --sizes-are-not-an-option
expect_exit 4
run_pytest -k 'numerical or correct'
expect_exit 1
run_pytest -k 'numerical or correct' --tolerance 0.1
expect_exit 0
run_pytest -k 'numerical or correct' --tolerance bfloat16=0.1
expect_exit 1
run_pytest --tolerance nonsense
expect_exit 4
expect_says "invalid tolerance 'nonsense'"

# generate writes the bounds into the generated tests. The bounds stay in the tests until --tolerance none removes them.
# The option --tolerance of pytest takes precedence over them.
run generate --tolerance 0.1 --tolerance bfloat16=0.2
expect_exit 0
expect_says 'tests/references/test_gemm.py written'
run_pytest -k 'numerical or correct'
expect_exit 0
run_pytest -k 'numerical or correct' --tolerance 1e-9
expect_exit 1
edit definitions/gemm/tiny_gemm.json '1.01 *' '1.02 *'
run verify --tolerance 0.1
run generate --check
expect_exit 0
run generate --check --tolerance 0.1
expect_exit 1
run generate --tolerance bfloat16=0.2 --tolerance 0.1
expect_exit 0
expect_says '0 written'
[ "$(grep -A3 '^TOLERANCES' tests/references/test_gemm.py | tr -d ' \n')" = 'TOLERANCES=("0.1","bfloat16=0.2",)' ] ||
	fail 'an update has changed the bounds of a generated file'
edit definitions/gemm/tiny_gemm.json '1.02 *' '1.01 *'
run generate --tolerance none
expect_exit 0
expectations=$((expectations + 1))
! grep -q TOLERANCES tests/references/test_gemm.py || fail '--tolerance none has removed no bounds'
run generate --tolerance none --tolerance 1
expect_exit 2
run generate --tolerance nonsense
expect_exit 2
expect_says "invalid tolerance 'nonsense'"

for word in nonsense 1e-4, , -1 nan inf 1,2,0 1,2,2 1,2,1,1 float99=1 =1 float16= "$(printf '%040d' 0)=1"; do
	run verify --tolerance "$word"
	expect_exit 2
	expect_says "invalid tolerance '$word'"
done
run watch --once --tolerance nonsense
expect_exit 2

edit definitions/gemm/tiny_gemm.json '"outputs"' '"tolerance": {"rtol": 0.25}, "outputs"'
run tolerance
expect_exit 0
expect_says 'gemm/tiny_gemm' 'C  float16  atol 0.00' 'rtol 0.25  hit ratio 1' \
	'atol from the op family gemm, rtol from the definition, hit ratio from the op family gemm'
run tolerance tiny_gemm --tolerance float16=0.5
expect_says 'C  float16  atol 0.5  rtol 0.5  hit ratio 1' 'atol and rtol from --tolerance, hit ratio from the op family gemm'
run tolerance tiny_gemm --tolerance 1 --atol 2 --hit-ratio 0.5
expect_says 'C  float16  atol 2  rtol 1  hit ratio 0.5' 'atol from --atol, rtol from --tolerance, hit ratio from --hit-ratio'
run tolerance nothing
expect_exit 2
# verify applies the bound that `reftest tolerance` printed.
verify tiny_gemm
expect "all(o['rtol'] == 0.25 for case in d['tiny_gemm']['cases'] for o in case['outputs'])"
