#!/bin/sh
# A provider is a process that computes ground truths with a library such as FlashInfer. If a provider declines a case,
# raises an exception, hangs, dies, writes where it must not, or answers in a wrong format, reftest uses the next ground
# truth instead, and the verdict names the provider and this ground truth. If the provider's problem may be temporary,
# the verdict is not stored.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
! "$reftest" doctor --format json | grep -q '"gaps": .*"process_memory"' ||
	skip "on this machine a provider that ended is not started again"
given tiny_gemm
export REFTEST_PROVIDERS="$top/tests/data/providers/planted"
verify --dry-run
first=$(value "d['tiny_gemm']['cases'][0]['id']")

# The name of each definition tells the planted provider how to behave, so that one run tests all kinds of failures.
# Each definition has a different width, because equal definitions would share one run of a case.
width=16
for deed in declines raises exits rejected no_compiler disk_full disk_full_at_run killed dies_in_the_answer unmapped writes_outside shape dtype chatters claims; do
	width=$((width + 1))
	cp definitions/gemm/tiny_gemm.json "definitions/gemm/tiny_gemm__$deed.json"
	edit "definitions/gemm/tiny_gemm__$deed.json" '"name": "tiny_gemm"' "\"name\": \"tiny_gemm__$deed\""
	edit "definitions/gemm/tiny_gemm__$deed.json" '"value": 16' "\"value\": $width"
done

# `passed_over NAME SENTENCE KEPT`: expects that flashinfer was skipped with a reason that contains SENTENCE, and that
# builtin was used instead. KEPT is True if the verdict is stored.
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
# tiny_gemm uses flashinfer, although flashinfer fails for other definitions in the same run.
expect "all_of('tiny_gemm', 'ground_truth') == ['flashinfer']"
# If a provider prints text, reftest does not read this text as the provider's answer.
expect "all_of('tiny_gemm__chatters', 'ground_truth') == ['flashinfer']"
expect "all_of('tiny_gemm__claims', 'ground_truth') == ['flashinfer'] and all_of('tiny_gemm__claims', 'ground_truth_version') == all_of('tiny_gemm', 'ground_truth_version')"
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first"
# Six verdicts are not stored, because the provider's problem may be temporary. They are those of the definitions
# dies_in_the_answer, killed, unmapped, disk_full, disk_full_at_run and no_compiler.
expect_ran 6
rm definitions/gemm/tiny_gemm__*

rm -rf .reftest
PLANTED=hangs verify --ground-truth flashinfer,builtin --timeout 3 --case "$first"
expect_exit 0
passed_over tiny_gemm 'did not answer within 3 s' False

# A compiler that never ends is stopped after its timeout, and a message reports the timeout.
PLANTED=compiles_forever run verify --device "$device" --format json --ground-truth flashinfer,builtin --timeout 5 --case "$first" --force
expect_exit 0
expect_says 'reftest: planted compiles for ever'
passed_over tiny_gemm 'did not answer within 7 s, of which 2 s were allowed for this preparation: planted compiles for ever' False

PLANTED=babbles verify --ground-truth flashinfer,builtin --case "$first" --force
expect_exit 0
passed_over tiny_gemm 'not a JSON object' False
PLANTED=no_compiler verify --ground-truth flashinfer,builtin --case "$first"
passed_over tiny_gemm 'Could not find nvcc' False
PLANTED=right verify --ground-truth flashinfer,builtin --case "$first" # the provider works again and is used
expect "all_of('tiny_gemm', 'ground_truth') == ['flashinfer'] and s['cases_run'] == 1"

# After a provider's process dies, the next case gets a new process.
rm -rf .reftest
PLANTED=dies verify --ground-truth flashinfer,torch
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and s['cases_run'] > 1"
expect_no_process

# If a provider breaks the device for its own process, the next provider and the same provider's next case still have a
# working device.
PLANTED=breaks_device verify --ground-truth flashinfer,torch --force
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'} and not any(all_of('tiny_gemm', 'kept'))"
expect "not any('broken for this process' in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases'])"

# If a provider's process dies twice in one family, the provider is not used for that family again in this run.
# Therefore a kernel that hangs costs at most two timeouts, however many cases there are.
PLANTED=hangs verify --ground-truth flashinfer,builtin --timeout 3 --force
expect_exit 0
expect "s['cases_run'] > 2 and not any(all_of('tiny_gemm', 'kept'))"
expect "[sum(words in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases']) for words in ('did not answer', 'is not used again')] == [2, s['cases_run'] - 2]"

# On a machine where a reference could change a process that is starting, no provider is started after the first
# reference has started.
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
printf '#!/bin/sh\nexec "%s" --no-namespaces --no-landlock "%s" "$@"\n' "$work/restrict" "$reftest" >"$work/restricted"
chmod +x "$work/restricted"
reftest=$work/restricted
own_interpreters # the interpreters that tests share are not restricted
PLANTED=dies verify --ground-truth flashinfer,builtin --force
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'} and not any(all_of('tiny_gemm', 'kept'))"
expect "[sum(words in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases']) for words in ('process terminated', 'no new process is started')] == [1, s['cases_run'] - 1]"
