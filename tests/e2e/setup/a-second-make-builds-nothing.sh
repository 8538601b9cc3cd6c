#!/bin/sh
# If no file has changed, make compiles nothing. After an edit of one C file, make compiles only this file. After a
# change of CFLAGS, it compiles all files. If a source file is deleted, make removes its object from the archive. An
# edit of one op family changes the digest of this family only.
. "$(dirname "$0")/../harness.sh"
name=$(basename "$build")
(cd "$top" && cp -a Makefile tools base cache dataset engine git kernels models python testgen workers "$work/") || fail "the sources could not be copied"
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
make_it CFLAGS=-O0 NVCC=another # without CUDA, or with another nvcc, the C files are not compiled again
expect_exit 0
expect_silence_about 'cc '
rm base/trace.c
make_it CFLAGS=-O0
expect_exit 0
expect_silence_about 'cc '
[ "$(ar t "$name/obj/base.a" | grep -c trace.o)" = 0 ] || fail "the archive still contains a deleted file"
digest=$(cat "$name/ops.inc")
printf '\n' >>kernels/rmsnorm/rmsnorm.c
make_it CFLAGS=-O0
[ "$(cat "$name/ops.inc")" != "$digest" ] || fail "the digest of the edited family did not change"
[ "$(grep gemm "$name/ops.inc")" = "$(echo "$digest" | grep gemm)" ] || fail "the digest of another family changed"
