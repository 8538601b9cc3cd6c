#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Verdicts that are exported and then imported at another path with new mtimes are accepted there, so no case runs.
# Damaged records are rejected and listed, and all other records of the file are imported.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
verify --sizes small,medium
expect_exit 0
all=$(value "s['cases_run']")
run cache export "$work/verdicts"
expect_exit 0
expect_says "$all verdicts exported"

# `fresh`: copies the dataset to a new folder, with new mtimes and without the cache.
fresh() {
	rm -rf "$work/else where"
	mkdir "$work/else where"
	cp -r definitions workloads "$work/else where/"
	[ ! -d blob ] || cp -r blob "$work/else where/"
	find "$work/else where" -type f -exec touch -d '2001-02-03 04:05:06' {} +
}
home=$root
fresh
cd "$work/else where"
run cache import "$work/verdicts"
expect_exit 0
expect_says "$all verdicts imported" '0 rejected'
verify --sizes small,medium --changed --cached-only
expect_exit 0
expect_ran 0
run explain --device cpu tiny_norm
expect_says 'is verified'
run cache import "$work/verdicts" "$work/verdicts"
expect_exit 0
expect_says '0 verdicts imported' "$all already stored"
run cache check
expect_exit 0
expect_says '0 damaged'

# Export and import work through pipes.
cd "$home"
"$reftest" cache export - 2>/dev/null >"$work/piped"
cmp -s "$work/piped" "$work/verdicts" || fail "the export through a pipe differs"
fresh
cd "$work/else where"
step="reftest cache import -"
"$reftest" cache import - <"$work/verdicts" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says "$all verdicts imported"

# In each of about twelve rounds, one byte of the exported file is changed. The damage is reported, and all imported
# verdicts are correct.
length=$(wc -c <"$work/verdicts")
at=60 damaged=0
while [ "$at" -lt "$length" ]; do
	cp "$work/verdicts" "$work/bad"
	printf '\377' | dd of="$work/bad" bs=1 seek="$at" conv=notrunc 2>/dev/null
	at=$((at + length / 12))
	cmp -s "$work/verdicts" "$work/bad" && continue
	rm -rf .reftest
	run cache import "$work/bad"
	if [ "$status" = 0 ]; then # a few bits of a compressed file have no meaning
		expect_says "$all verdicts imported"
	else
		expect_exit 1
		expect_says "$work/bad: "
		damaged=$((damaged + 1))
	fi
	run cache check
	expect_exit 0
done
[ "$damaged" -ge 8 ] || fail "damage was reported in $damaged rounds only"

# Files joined with cat are imported.
cat "$work/verdicts" "$work/verdicts" >"$work/joined"
rm -rf .reftest
run cache import "$work/joined"
expect_exit 0
expect_says "$all verdicts imported" "$all already stored" '0 rejected'
run cache check
expect_exit 0
rm -rf .reftest

# A truncated file, an empty file, and a file that is not an export are rejected.
head -c $((length - 50)) "$work/verdicts" >"$work/cut"
run cache import "$work/cut" "$work/verdicts"
expect_exit 1
expect_says 'cut short' '0 rejected'
run cache import "$work/nowhere"
expect_exit 2
expect_says 'no such file'
run cache import definitions/rmsnorm/tiny_norm.json
expect_exit 2
expect_says 'the file does not begin like an exported file'
verify --sizes small,medium --changed --cached-only
expect_exit 0
expect_ran 0
