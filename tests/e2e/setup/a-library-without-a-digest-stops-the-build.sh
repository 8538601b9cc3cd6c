#!/bin/sh
# The digests of the libraries are compiled into the program. The script tools/library_digests.sh computes them, and
# reads the segments of each library with readelf. If readelf is missing or cannot read a library, the build stops with
# a message. Otherwise the program would contain an empty digest, and would accept either no library or every library.
# The library of the sandbox is compiled with the user's CFLAGS and LDFLAGS, like the rest of the program.
. "$(dirname "$0")/../harness.sh"

mkdir "$work/tools" "$work/libraries"
for name in sh head sha256sum cut; do
	ln -s "$(command -v $name)" "$work/tools/$name"
done
digests() { # digests FOLDER: prints the header for the libraries of FOLDER, with the tools of $tools
	step="library_digests.sh $1"
	PATH=$tools "$top/tools/library_digests.sh" "$1" >"$work/out" 2>"$work/err" && status=0 || status=1
}

tools=$PATH
digests "$build"
expect_exit 0
grep -qE '^#define SANDBOX_LIBRARY_DIGEST "[0-9a-f]{64}"$' "$work/out" || fail "the library of the sandbox has no digest"
digests "$work/libraries" # a library that was not built has an empty digest
expect_exit 0
expect_says 'SANDBOX_LIBRARY_DIGEST ""'

tools=$work/tools
digests "$build"
expect_exit 1
expect_says 'readelf, of the package binutils, cannot read'
tools=$PATH
echo 'not a library' >"$work/libraries/libreftest_sandbox.so"
digests "$work/libraries"
expect_exit 1
expect_says 'libreftest_sandbox.so'

# make passes the user's CFLAGS and LDFLAGS to the compiler.
(cd "$top" && make -n BUILD="$build" NVCC= CFLAGS=-Oplanted LDFLAGS=-Wl,planted -W workers/sandbox/sandbox.c \
	"$build/libreftest_sandbox.so") >"$work/out" 2>"$work/err" || fail "make -n failed"
grep -e '-shared' "$work/out" | grep -e '-Oplanted' | grep -qe '-Wl,planted' ||
	fail "the library of the sandbox is built without CFLAGS or LDFLAGS"
