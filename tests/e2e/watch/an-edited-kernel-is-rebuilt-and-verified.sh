#!/bin/sh
# If a source file in kernels/rmsnorm/ is edited, watch runs make, restarts with the new program, and verifies only the
# definitions of norms again. If a source file does not compile, watch says so and continues to use the old kernels.
. "$(dirname "$0")/../harness.sh"
[ "$(basename "$build")" = build ] || skip "watch rebuilds only the default build"
given tiny_norm tiny_gemm
# The test uses a copy of the checkout with its object files, so that only changed files are compiled.
mkdir -p "$work/tree/build"
(cd "$top" && cp -a Makefile tools base kernels workers python dataset cache engine watcher git remote report testgen check cli models extract repos web fleet serve reftest.c "$work/tree/" &&
	cp -a build/obj build/*.inc build/*.h build/*.so build/reftest "$work/tree/build/" && rm -f "$work/tree/build/libreftest_kernels_cuda.so")
make -s -C "$work/tree" NVCC= all >"$work/make" 2>&1 || fail "the copy could not be built: $(tail -n 5 "$work/make")"
reftest=$work/tree/build/reftest
export MAKEFLAGS='NVCC=' REFTEST_PYTHON="$python"
watch
expect_events "e['passed'] == 2"
source=$work/tree/kernels/rmsnorm/rmsnorm.c
cp "$source" "$work/source"
: >"$work/tree/kernels/rmsnorm/.rmsnorm.c.swp" # an editor's swap file, which is not a source
echo 'this is no C' >>"$source"
await "e['event'] == 'notice' and 'running make' in e['message']"
await "e['event'] == 'notice' and 'failed' in e['message']"
expect_events "'rmsnorm.c' in e['message']"
{
	cat "$work/source"
	echo '/* an edit that changes nothing but the text */'
} >"$work/mended"
mv "$work/mended" "$source"
await "e['event'] == 'notice' and 'restarting' in e['message']"
await "e['event'] == 'ready'"
expect_events "e['passed'] == 2"
expect_events "[x['name'] for x in a if x['event'] == 'verdict' and x['cases_run'] > 0] == ['tiny_norm']"
expect_events "[x['cases_run'] for x in a if x['event'] == 'batch'] == [4]"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict' and e['status'] == 'failed'"
end_watch
