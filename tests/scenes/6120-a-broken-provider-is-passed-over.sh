#!/bin/sh
# 6120: a provider that declines, raises, hangs, dies, writes where it must not or answers another form decides nothing: the
# next one does, and the verdict tells of both. What may be gone tomorrow is not remembered.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted"
verify --dry-run
first=$(value "d['tiny_gemm']['cases'][0]['id']")

# Definitions after whose names the planted provider does its deeds, in one run. Each is of another width, for equal ones
# would be one case.
width=16
for deed in declines raises exits rejected no_compiler disk_full disk_full_at_run killed dies_in_the_answer unmapped writes_outside shape dtype chatters claims; do
	width=$((width + 1))
	cp definitions/gemm/tiny_gemm.json "definitions/gemm/tiny_gemm__$deed.json"
	edit "definitions/gemm/tiny_gemm__$deed.json" '"name": "tiny_gemm"' "\"name\": \"tiny_gemm__$deed\""
	edit "definitions/gemm/tiny_gemm__$deed.json" '"value": 16' "\"value\": $width"
done

# passed_over NAME SENTENCE KEPT: builtin decided; is the verdict stored?
passed_over() {
	expect_status "$1" passed
	expect "all_of('$1', 'ground_truth') == ['builtin']"
	expect "all('$2' in w['passed_over'] for case in d['$1']['cases'] for w in case['witnesses'][:1])"
	expect "all(case['witnesses'][1]['passed_over'] is None for case in d['$1']['cases'])"
	expect "all(kept == $3 for kept in all_of('$1', 'kept'))"
}

rm -rf .reftest
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first"
expect_exit 0
passed_over tiny_gemm__declines 'planted: no kernel for this' True
passed_over tiny_gemm__raises 'RuntimeError: planted: nvcc is in a bad mood' True
passed_over tiny_gemm__exits 'SystemExit: planted' True
passed_over tiny_gemm__rejected 'static assertion failed' True
passed_over tiny_gemm__no_compiler 'Could not find nvcc' False
passed_over tiny_gemm__disk_full 'No space left' False
passed_over tiny_gemm__disk_full_at_run 'No space left' False
passed_over tiny_gemm__killed 'FAILED: a.o' False
passed_over tiny_gemm__dies_in_the_answer 'signal 9' False
passed_over tiny_gemm__unmapped 'planted: the arena cannot be mapped' False
passed_over tiny_gemm__writes_outside 'wrote outside its tensors' True
passed_over tiny_gemm__shape 'declared' True
passed_over tiny_gemm__dtype 'declared' True
expect "all_of('tiny_gemm', 'ground_truth') == ['flashinfer']" # whoever lived before or after them
expect "all_of('tiny_gemm__chatters', 'ground_truth') == ['flashinfer']" # what it prints is no answer
expect "all_of('tiny_gemm__claims', 'ground_truth') == ['flashinfer'] and all_of('tiny_gemm__claims', 'ground_truth_version') == all_of('tiny_gemm', 'ground_truth_version')"
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first"
expect_ran 6 # what an accident kept from an answer: dies, killed, unmapped, two full disks, no compiler
rm definitions/gemm/tiny_gemm__*

rm -rf .reftest
PLANTED=hangs verify --ground-truth flashinfer,builtin --timeout 3 --case "$first"
expect_exit 0
passed_over tiny_gemm 'did not answer within 3 s' False

# A compiler that comes to no end has the time that it was given, and is told with it.
PLANTED=compiles_forever run verify --device "$device" --format json --ground-truth flashinfer,builtin --timeout 5 --case "$first" --force
expect_exit 0
expect_says 'reftest: planted compiles for ever'
passed_over tiny_gemm 'did not answer within 7 s, of which 2 for this: planted compiles for ever' False

PLANTED=babbles verify --ground-truth flashinfer,builtin --case "$first" --force
expect_exit 0
passed_over tiny_gemm 'no JSON object' False
PLANTED=no_compiler verify --ground-truth flashinfer,builtin --case "$first"
passed_over tiny_gemm 'Could not find nvcc' False
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first" # it is there again, and is asked
expect "all_of('tiny_gemm', 'ground_truth') == ['flashinfer'] and s['cases_run'] == 1"

# After its death the next case finds another provider.
rm -rf .reftest
PLANTED=dies verify --ground-truth flashinfer,torch
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and s['cases_run'] > 1"
expect_no_process

# One that broke the device for its process does not take the next one with it, nor its own next case.
PLANTED=breaks_device verify --ground-truth flashinfer,torch --force
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and not any(all_of('tiny_gemm', 'kept'))"
expect "not any('broken for this process' in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases'])"

# Whoever ends its process twice with one family is not asked for that family again in this run: a kernel that hangs costs a
# deadline twice, however many cases there are.
PLANTED=hangs verify --ground-truth flashinfer,builtin --timeout 3 --force
expect_exit 0
expect "s['cases_run'] > 2 and not any(all_of('tiny_gemm', 'kept'))"
expect "[sum(words in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases']) for words in ('did not answer', 'is not asked again')] == [2, s['cases_run'] - 2]"
