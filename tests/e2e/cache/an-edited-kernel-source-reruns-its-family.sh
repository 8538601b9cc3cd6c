#!/bin/sh
# After a source file of kernels/rmsnorm/ is edited and reftest is rebuilt, exactly the rmsnorm cases run again. With
# the old build, the old verdicts are accepted again. Each build refuses to load the kernels library of the other build.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm

# Copies the sources and their object files, so that only changed files are compiled.
name=$(basename "$build")
mkdir -p "$work/tree/$name"
(cd "$top" && cp -a Makefile tools base kernels workers python dataset cache engine watcher git remote report testgen check cli models extract repos web fleet serve \
	reftest.c "$work/tree/" && cp -a "$name/obj" "$name"/*.inc "$name"/*.h "$name"/*.so "$name/reftest" "$work/tree/$name/")
build_as() { # build_as NAME: builds the current sources into $work/tree/NAME
	make -s -C "$work/tree" "$name/reftest" BUILD="$name" NVCC= \
		SANITIZE="$([ "$name" = build ] || echo address,undefined)" >"$work/make" 2>&1 ||
		fail "the copy could not be built: $(tail -n 5 "$work/make")"
	mkdir "$work/tree/$1"
	cp "$work/tree/$name"/libreftest_*.so "$work/tree/$name/reftest" "$work/tree/$1/"
}
build_as before
printf '\n/* an edit that changes nothing but the text */\n' >>"$work/tree/kernels/rmsnorm/rmsnorm.c"
build_as after

REFTEST_PYTHON=$python
export REFTEST_PYTHON
reftest=$work/tree/before/reftest
verify
expect_exit 0
norms=$(value "len(d['tiny_norm']['cases'])") gemms=$(value "len(d['tiny_gemm']['cases'])")
expect_ran $((norms + gemms))
reftest=$work/tree/after/reftest
expect_why tiny_norm 'stale'
verify
expect_exit 0
expect_ran "$norms"
expect_cached "$gemms"
expect "not any(all_of('tiny_norm', 'cached')) and all(all_of('tiny_gemm', 'cached'))"
verify
expect_ran 0
reftest=$work/tree/before/reftest
expect_nothing_to_do
REFTEST_KERNELS=$work/tree/after run status --device "$device"
expect_exit 4
expect_says 'the library was not built with this program'
