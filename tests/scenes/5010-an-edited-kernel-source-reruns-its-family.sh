#!/bin/sh
# 5010: one source file of kernels/rmsnorm/ is edited and the library rebuilt: exactly the rmsnorm cases run again.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
verify
expect_exit 0
norms=$(value "len(d['tiny_norm']['cases'])") gemms=$(value "len(d['tiny_gemm']['cases'])")

# The sources elsewhere, with the objects as they are, so that only what the edit touches is compiled.
name=$(basename "$build")
mkdir -p "$work/tree/$name"
(cd "$top" && cp -a Makefile tools base kernels workers reftest.[ch] "$work/tree/" && cp -a "$name/obj" "$name"/*.inc "$name"/*.h "$work/tree/$name/")
printf '\n/* an edit that changes nothing but the text */\n' >>"$work/tree/kernels/rmsnorm/rmsnorm.c"
make -s -C "$work/tree" "$name/libreftest_kernels.so" BUILD="$name" NVCC= >"$work/make" 2>&1 ||
	fail "the copy could not be built: $(tail -n 5 "$work/make")"
REFTEST_KERNELS=$work/tree/$name
export REFTEST_KERNELS
verify
expect_exit 0
expect_ran "$norms"
expect_cached "$gemms"
expect "not any(all_of('tiny_norm', 'cached')) and all(all_of('tiny_gemm', 'cached'))"
verify
expect_ran 0
unset REFTEST_KERNELS
expect_nothing_to_do
