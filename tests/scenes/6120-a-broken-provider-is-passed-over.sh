#!/bin/sh
# 6120: a provider that declines, raises, hangs, dies, writes where it must not or answers another form decides nothing: the
# next one does, and the verdict tells of both. What may be gone tomorrow is not remembered.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted"

# passed_over DEED SENTENCE KEPT: builtin decides; is the verdict stored?
passed_over() {
	rm -rf .reftest
	PLANTED=$1
	export PLANTED
	verify --ground-truth flashinfer,builtin --timeout "${4:-60}" --case "$first"
	expect_exit 0
	expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"
	expect "all('$2' in w['passed_over'] for case in d['tiny_gemm']['cases'] for w in case['witnesses'][:1])"
	expect "all(case['witnesses'][1]['passed_over'] is None for case in d['tiny_gemm']['cases'])"
	expect "all(kept == $3 for kept in all_of('tiny_gemm', 'kept'))"
}

verify
first=$(value "d['tiny_gemm']['cases'][0]['id']")
passed_over declines 'planted: no kernel for this' True
passed_over raises 'RuntimeError: planted: nvcc is in a bad mood' True
passed_over exits 'SystemExit: planted' True
passed_over rejected 'static assertion failed' True
passed_over no_compiler 'Could not find nvcc' False
passed_over disk_full 'No space left' False
passed_over disk_full_at_run 'No space left' False
passed_over killed 'FAILED: a.o' False
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first" # it is there again, and is asked
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'flashinfer'} and s['cases_run'] == 1"
passed_over dies 'signal 9' False
passed_over hangs 'did not answer within 3 s' False 3
passed_over babbles 'no JSON object' False
passed_over writes_outside 'wrote outside its tensors' True
passed_over shape 'declared' True
passed_over dtype 'declared' True
verify --ground-truth flashinfer,builtin --case "$first"
expect_ran 0

# After its death the next case finds another provider.
PLANTED=dies verify --ground-truth flashinfer,torch
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and s['cases_run'] > 1"
expect_no_process

# One that broke the device for its process does not take the next one with it.
PLANTED=breaks_device verify --ground-truth flashinfer,torch --force
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and not any(all_of('tiny_gemm', 'kept'))"

# Whoever ends its process twice with one family is not asked for that family again in this run: a kernel that hangs costs a
# deadline twice, however many cases there are.
PLANTED=hangs verify --ground-truth flashinfer,builtin --timeout 3 --force
expect_exit 0
expect "s['cases_run'] > 2 and not any(all_of('tiny_gemm', 'kept'))"
expect "[sum(words in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases']) for words in ('did not answer', 'is not asked again')] == [2, s['cases_run'] - 2]"
