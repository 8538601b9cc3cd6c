#!/bin/sh
# 9255: what a library verified on one machine another finds in the remote: with the same library, alone, among others that
# agreed, or after one that passed; not in the oracle's place, nor with another version of it. A GPU's counts where neither
# GPU nor library is, if it is asked for.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm
redis_begins
elsewhere() { # ARGUMENT…: the same dataset on another machine, which has nothing yet and may run nothing
	cd "$root"
	rm -rf "$work/clone"
	mkdir "$work/clone"
	cp -r definitions workloads "$work/clone"
	cd "$work/clone"
	verify --cached-only "$@"
	[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
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
another_version() { # FOLDER FILE ARGUMENT…: of the table in FILE
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
misses                     # what torch says is not what the oracle would
misses --ground-truth all  # nor what both would
another_version "$top/workers/providers" torch.py --ground-truth torch

# Both, which agreed. Who asks for one of them finds that one's own.
cd "$root"
verify --ground-truth all
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for case in c.values())"
finds --ground-truth all
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for case in c.values())"
finds --ground-truth torch
expect "all([w['name'] for w in case['witnesses']] == ['torch'] for case in c.values())"
misses
another_version "$top/workers/providers" torch.py --ground-truth all

# As a GPU's, for who has none: by --device-class, and where any GPU's counts. Builtin, which was among them, is of here.
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

# One that passed, and left it to the next.
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
