#!/bin/sh
# library_digests - prints a header with the SHA-256 of each library in the folder BUILD, for base/sealed_library.h. The
# digest covers the part of the file that a loader maps, up to the end of the last segment of the type LOAD. The digest of
# a library that was not built is empty. Usage: library_digests.sh BUILD
set -eu
export LC_ALL=C

digest() { # digest FILE
	[ -f "$1" ] || return 0
	end=0
	# shellcheck disable=SC2034 # the columns of readelf
	while read -r kind offset virtual physical length rest; do
		[ "$kind" = LOAD ] && [ $((offset + length)) -gt "$end" ] && end=$((offset + length))
	done <<-SEGMENTS
		$(readelf -lW "$1")
	SEGMENTS
	head -c "$end" "$1" | sha256sum | cut -c 1-64
}

for library in KERNELS:kernels CUDA:kernels_cuda SIGN:sign REMOTE:remote; do
	printf '#define %s_LIBRARY_DIGEST "%s"\n' "${library%:*}" "$(digest "$1/libreftest_${library#*:}.so")"
done
