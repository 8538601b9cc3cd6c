#!/bin/sh
# 9000: verdicts exported here are believed elsewhere: at another path, all mtimes new, nothing runs; what is damaged on
# the way is refused by name, the rest is taken.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
verify --sizes small,medium
expect_exit 0
all=$(value "s['cases_run']")
run cache export "$work/verdicts"
expect_exit 0
expect_says "$all verdicts exported"

# another checkout, without a cache
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
expect_says "$all verdicts taken" '0 refused'
verify --sizes small,medium --changed --cached-only
expect_exit 0
expect_ran 0
run explain --device cpu tiny_norm
expect_says 'is verified'
run cache import "$work/verdicts" "$work/verdicts"
expect_exit 0
expect_says '0 verdicts taken' "$all were here already"
run cache check
expect_exit 0
expect_says '0 damaged'

# through pipes
cd "$home"
"$reftest" cache export - 2>/dev/null >"$work/piped"
cmp -s "$work/piped" "$work/verdicts" || fail "what is exported through a pipe is something else"
fresh
cd "$work/else where"
step="reftest cache import -"
"$reftest" cache import - <"$work/verdicts" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says "$all verdicts taken"

# One octet of each hundred, one after the other: it is told, and what is taken is right.
length=$(wc -c <"$work/verdicts")
at=60
while [ "$at" -lt "$length" ]; do
	cp "$work/verdicts" "$work/bad"
	printf '\377' | dd of="$work/bad" bs=1 seek="$at" conv=notrunc 2>/dev/null
	at=$((at + length / 12))
	cmp -s "$work/verdicts" "$work/bad" && continue
	rm -rf .reftest
	run cache import "$work/bad"
	expect_exit 1
	expect_says "$work/bad: "
	run cache check
	expect_exit 0
done

# cut short; nothing of it; no file of ours
head -c $((length - 50)) "$work/verdicts" >"$work/cut"
run cache import "$work/cut" "$work/verdicts"
expect_exit 1
expect_says 'cut short' '0 refused'
run cache import "$work/nowhere"
expect_exit 4
expect_says 'no such file'
run cache import definitions/rmsnorm/tiny_norm.json
expect_exit 4
expect_says 'is no file that'
verify --sizes small,medium --changed --cached-only
expect_exit 0
expect_ran 0
