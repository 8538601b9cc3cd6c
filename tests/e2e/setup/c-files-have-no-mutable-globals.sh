#!/bin/sh
# No C file has a global or static variable that is not const, so a function changes only objects that its caller
# passes. The test looks for such variables in the writable sections of the object files. It omits CUDA files, because
# nvcc adds mutable variables of its own to their object files.
. "$(dirname "$0")/../harness.sh"

# `mutable FOLDER`: prints the object file and the name of each mutable global variable below FOLDER.
mutable() {
	find "$1" -name '*.o' ! -name '*.cu.o' ! -path '*/tests/*' ! -path '*/bench/*' | while read -r object; do
		source=${object#"$1/"}
		[ ! -f "$top/${source%.o}.c" ] && [ "$1" = "$build/obj" ] || readelf -SsW "$object" | awk -v file="$source" '
			/^ *\[/ { sub(/^ *\[ */, ""); sub(/\]/, ""); if ($2 ~ /^\.(data|bss|tdata|tbss)/ && $2 !~ /rel\.ro/) writable[$1] }
			($4 == "OBJECT" || $4 == "TLS") && ($7 in writable) { print file, $8 }'
	done
}
step='the object files of the build'
expectations=$((expectations + 1))
case $build in *-asan*) skip "a sanitizer adds variables of its own" ;; esac
mutable "$build/obj" >"$work/out"
[ ! -s "$work/out" ] || fail "these variables can be changed"

for text in 'int count;' 'int *used(void) { static int count = 1; return &count; }' 'static _Thread_local int count; int *used(void) { return &count; }'; do
	step="a file with: $text"
	expectations=$((expectations + 1))
	echo "$text const char *const names[] = {\"a\"};" >"$work/one.c"
	${CC:-cc} -fPIC -c -o "$work/one.o" "$work/one.c"
	[ "$(mutable "$work" | sed 's/\.[0-9]*$//')" = 'one.o count' ] || fail "the variable is not found, or a constant is"
done
