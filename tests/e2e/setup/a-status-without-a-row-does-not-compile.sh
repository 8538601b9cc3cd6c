#!/bin/sh
# If `enum status` gets a new member, a file whose table needs a row or a count for every status does not compile.
. "$(dirname "$0")/../harness.sh"
mkdir -p "$work/another/dataset"
sed 's/^\tSTATUS_COUNT$/\tSTATUS_ANOTHER,\n&/' "$top/dataset/verdict.h" >"$work/another/dataset/verdict.h"
! cmp -s "$top/dataset/verdict.h" "$work/another/dataset/verdict.h" || fail "enum status has no line STATUS_COUNT"
compile() { # compile FILE [OPTION…]: checks a source; the options come before those of the build
	file=$1 step="compile $*"
	shift
	${CC:-cc} -std=c11 -D_GNU_SOURCE "$@" -I"$top" -I"$build" -fsyntax-only "$top/$file" >"$work/out" 2>"$work/err" &&
		status=0 || status=1
}
for row in 'dataset/verdict.c|each status has a row' \
	'engine/definition_status.c|struct summary has a count for each status' \
	'report/run_json.c|has a member for each status'; do
	compile "${row%|*}"
	expect_exit 0
	compile "${row%|*}" -I"$work/another"
	expect_exit 1
	expect_says "${row#*|}"
done
