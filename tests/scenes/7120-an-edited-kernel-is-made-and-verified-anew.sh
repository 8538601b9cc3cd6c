#!/bin/sh
# 7120: a source of kernels/rmsnorm/ is edited while watch runs: make is run, watch begins anew with what it made, and only the
# norms run again; a source that does not compile is told of, and the old kernels stay.
. "$(dirname "$0")/scene.sh"
[ "$(basename "$build")" = build ] || skip "only the plain build is what make alone makes again"
given tiny_norm tiny_gemm
# The checkout elsewhere, with the objects as they are, so that only what is out of date is compiled.
mkdir -p "$work/tree/build"
(cd "$top" && cp -a Makefile tools base kernels workers dataset cache plan watcher git remote seal commands reftest.[ch] "$work/tree/" &&
	{ [ ! -d artifacts ] || cp -a artifacts "$work/tree/"; } &&
	cp -a build/obj build/*.inc build/*.h build/*.so build/reftest "$work/tree/build/" && rm -f "$work/tree/build/libreftest_kernels_cuda.so")
make -s -C "$work/tree" NVCC= all >"$work/make" 2>&1 || fail "the copy could not be built: $(tail -n 5 "$work/make")"
reftest=$work/tree/build/reftest
export MAKEFLAGS='NVCC=' REFTEST_PYTHON="$python"
watch
heard "e['passed'] == 2"
source=$work/tree/kernels/rmsnorm/rmsnorm.c
cp "$source" "$work/source"
: >"$work/tree/kernels/rmsnorm/.rmsnorm.c.swp" # no source
echo 'this is no C' >>"$source"
await "e['event'] == 'notice' and 'running make' in e['message']"
await "e['event'] == 'notice' and 'failed' in e['message']"
heard "'rmsnorm.c' in e['message']"
{
	cat "$work/source"
	echo '/* an edit that changes nothing but the text */'
} >"$work/mended"
mv "$work/mended" "$source"
await "e['event'] == 'notice' and 'beginning again' in e['message']"
await "e['event'] == 'ready'"
heard "e['passed'] == 2"
heard "[x['name'] for x in a if x['event'] == 'verdict' and x['cases_run'] > 0] == ['tiny_norm']"
heard "[x['cases_run'] for x in a if x['event'] == 'batch'] == [4]"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict' and e['status'] == 'failed'"
end_watch
