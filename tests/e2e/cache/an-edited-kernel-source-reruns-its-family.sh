#!/bin/sh
# After a source file of kernels/rmsnorm/ is edited and the library is rebuilt, exactly the rmsnorm cases run again.
# After the old library is restored, the old verdicts are accepted again.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm

# A copy of the sources with their object files, so that only changed files are compiled.
name=$(basename "$build")
mkdir -p "$work/tree/$name"
(cd "$top" && cp -a Makefile tools base kernels dataset workers python testgen "$work/tree/" && cp -a "$name/obj" "$name"/*.inc "$name"/*.h "$name/libreftest_kernels.so" "$work/tree/$name/")
library() { # library NAME: builds the current sources into $work/NAME
	make -s -C "$work/tree" "$name/libreftest_kernels.so" BUILD="$name" NVCC= \
		SANITIZE="$([ "$name" = build ] || echo address,undefined)" >"$work/make" 2>&1 ||
		fail "the copy could not be built: $(tail -n 5 "$work/make")"
	mkdir "$work/$1"
	cp "$work/tree/$name/libreftest_kernels.so" "$work/$1/"
}
library before
printf '\n/* an edit that changes nothing but the text */\n' >>"$work/tree/kernels/rmsnorm/rmsnorm.c"
library after

export REFTEST_KERNELS="$work/before"
verify
expect_exit 0
norms=$(value "len(d['tiny_norm']['cases'])") gemms=$(value "len(d['tiny_gemm']['cases'])")
expect_ran $((norms + gemms))
REFTEST_KERNELS=$work/after
expect_why tiny_norm 'stale'
verify
expect_exit 0
expect_ran "$norms"
expect_cached "$gemms"
expect "not any(all_of('tiny_norm', 'cached')) and all(all_of('tiny_gemm', 'cached'))"
verify
expect_ran 0
REFTEST_KERNELS=$work/before
expect_nothing_to_do
