#!/bin/sh
# 1030: a make with nothing to do compiles nothing; an edited file compiles itself and what includes it; a failed
# compilation says what the machine lacks.
. "$(dirname "$0")/scene.sh"
name=$(basename "$build")
(cd "$top" && cp -a Makefile tools base kernels "$work/") || fail "the sources could not be copied"
cd "$work"
make_it() {
	step="make $*"
	status=0
	make BUILD="$name" NVCC= "$name/obj/base.a" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}
make_it
expect_exit 0
expect_says 'cc base/err.c'
make_it
expect_exit 0
expect_silence_about 'cc '
touch base/err.c
make_it
expect_says 'cc base/err.c'
expect_silence_about 'cc base/dtype.c'
make_it CFLAGS=-O0
expect_says 'cc base/dtype.c'
make_it CFLAGS=-O0 NVCC=another # without CUDA, or with an nvcc that was found since: C is what it was
expect_exit 0
expect_silence_about 'cc '
rm base/trace.c
make_it CFLAGS=-O0
expect_exit 0
expect_silence_about 'cc '
[ "$(ar t "$name/obj/base.a" | grep -c trace.o)" = 0 ] || fail "the archive still holds what was deleted"
digest=$(cat "$name/ops.inc")
printf '\n' >>kernels/rmsnorm/rmsnorm.c
make_it CFLAGS=-O0
[ "$(cat "$name/ops.inc")" != "$digest" ] || fail "the digest of an edited family is the old one"
[ "$(grep gemm "$name/ops.inc")" = "$(echo "$digest" | grep gemm)" ] || fail "the digest of another family changed"
