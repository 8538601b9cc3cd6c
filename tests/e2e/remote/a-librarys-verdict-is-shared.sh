#!/bin/sh
# Through a remote cache, a machine finds a verdict that another machine computed with a library. The verdict is found
# if only this library was called, if several libraries were called and agreed, and if another library was skipped
# before this one. The verdict of a library is not accepted in place of a verdict of the oracle or of another version of
# the library. On request, a machine without a GPU and without the library accepts a verdict that was computed on a GPU.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
redis_begins
# `elsewhere ARGUMENT…`: runs verify as another machine would: on a copy of the dataset, with an empty cache, and with
# --cached-only.
elsewhere() {
	cd "$root"
	rm -rf "$work/clone"
	mkdir "$work/clone"
	cp -r definitions workloads "$work/clone"
	cd "$work/clone"
	verify --cached-only "$@"
	[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
}
finds() { # ARGUMENT…
	elsewhere "$@"
	expect_exit 0
	expect_cached "$all"
	expect "all('redis+unix://' in case['why'] for case in c.values())"
}
misses() { # ARGUMENT…
	elsewhere "$@"
	expect_exit 3
	expect_cached 0
}
another_version() { # another_version FOLDER FILE ARGUMENT…: runs verify with another version of the table in FILE
	rm -rf "$work/providers"
	cp -r "$1" "$work/providers"
	echo '# another table' >>"$work/providers/$2"
	shift 2
	REFTEST_PROVIDERS=$work/providers misses "$@"
}
verify --ground-truth torch
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'}"
all=$(value "s['cases_run']")
finds --ground-truth torch
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'}"
misses # torch's verdict is not accepted for the oracle
misses --ground-truth all # nor is it accepted for both ground truths
another_version "$top/python/libraries" torch.py --ground-truth torch

# The first run called both ground truths, and they agreed. A run that selects only torch finds the verdict of torch,
# and a run with the default ground truth finds no verdict.
cd "$root"
verify --ground-truth all
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for case in c.values())"
finds --ground-truth all
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for case in c.values())"
finds --ground-truth torch
expect "all([w['name'] for w in case['witnesses']] == ['torch'] for case in c.values())"
misses
another_version "$top/python/libraries" torch.py --ground-truth all

# The verdicts are relabelled as if a GPU had computed them. A machine without a GPU finds these verdicts with
# --device-class sm_90 or --device auto. The ground truth builtin was also called; its sources are the same on both
# machines.
cd "$root"
make_relabel
mkdir "$work/given"
FOLDER=$work/given "$work/relabel" . sm_90 gemm/tiny_gemm >"$work/out" 2>&1 || fail "relabel: $(cat "$work/out")"
for file in "$work/given"/*; do
	key=$(printf %s "$(basename "$file")" | sha256sum | cut -d ' ' -f 1)
	redis -x set "reftest:$key" <"$file" >/dev/null
done
misses --device-class sm_80
finds --device-class sm_90
expect "s['accepted_from_elsewhere'] and all(case['device_class'] == 'sm_90' for case in c.values())"
CUDA_VISIBLE_DEVICES= finds --device auto
expect "all(case['device_class'] == 'sm_90' for case in c.values())"

# In this run, the first ground truth is skipped, and the next one is used. The verdict must be found nevertheless.
cd "$root"
redis flushall >/dev/null
export REFTEST_PROVIDERS="$top/tests/data/providers/planted" PLANTED=declines
verify --ground-truth flashinfer,builtin
expect_exit 0
expect "all('no kernel for this' in case['witnesses'][0]['passed_over'] for case in c.values())"
finds --ground-truth flashinfer,builtin
misses
another_version "$REFTEST_PROVIDERS" flashinfer.py --ground-truth flashinfer,builtin
unset REFTEST_PROVIDERS PLANTED
end_servers
