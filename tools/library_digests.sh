#!/bin/sh
# library_digests - prints a C header with the SHA-256 of each library in the folder BUILD. base/sealed_library.h uses
# these digests. A digest covers the part of the file that a loader maps, up to the end of the last segment of type
# LOAD. If a library was not built, its digest is empty. Usage: library_digests.sh BUILD
set -eu
export LC_ALL=C

fail() {
	echo "library_digests.sh: $*" >&2
	exit 1
}

digest() { # digest FILE: prints the digest of a library
	[ -f "$1" ] || return 0
	end=0
	segments=$(readelf -lW "$1") || fail "readelf, of the package binutils, cannot read $1"
	# shellcheck disable=SC2034 # the columns of readelf
	while read -r kind offset virtual physical length rest; do
		[ "$kind" = LOAD ] && [ $((offset + length)) -gt "$end" ] && end=$((offset + length))
	done <<-SEGMENTS
		$segments
	SEGMENTS
	[ "$end" -gt 0 ] || fail "readelf names no segment of $1 that a loader maps"
	head -c "$end" "$1" | sha256sum | cut -c 1-64
}

for library in KERNELS:kernels CUDA:kernels_cuda SIGN:sign REMOTE:remote SANDBOX:sandbox; do
	value=$(digest "$1/libreftest_${library#*:}.so")
	printf '#define %s_LIBRARY_DIGEST "%s"\n' "${library%:*}" "$value"
done
