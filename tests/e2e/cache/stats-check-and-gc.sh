#!/bin/sh
# `cache stats` counts hits, and counts misses by reason. `cache check` names each damaged record. `cache gc` removes
# exactly the verdicts that no definition needs.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
run cache stats
expect_exit 3
expect_says 'no cache'
verify
expect_exit 0
all=$(value "s['cases_run']")
verify --force
verify
expect_ran 0
run cache stats --format json
expect_exit 0
expect "r['verdicts'] == $all and r['runs'] == 3 and r['hits'] == $all"
expect "r['misses']['nothing_stored'] == $all and r['misses']['forced'] == $all"
run cache path
expect_says '.reftest/cache'

# After an edit is undone, the cache still has verdicts of the edited text. No definition needs these verdicts, but gc
# keeps them because they are recent.
cp definitions/rmsnorm/tiny_norm.json "$work/before"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
verify
expect_exit 1
cp "$work/before" definitions/rmsnorm/tiny_norm.json
verify
run cache gc
expect_exit 0
expect_says ': removed 0 verdicts that'
mv definitions/rmsnorm/tiny_norm.json "$work/away"
sleep 1 # the dates of verdicts have a resolution of one second
verify --force
run cache gc --days 0 --dry-run
expect_says 'gc would remove'
run cache stats --format json
kept=$(value "r['verdicts']")
run cache gc --days 0
expect_exit 0
expect_silence_about ': removed 0 verdicts that'
run cache stats --format json
expect "r['verdicts'] < $kept"
mv "$work/away" definitions/rmsnorm/tiny_norm.json
run cache gc --days 0
verify tiny_gemm
expect_exit 0
expect_ran 0
verify
expect_exit 0

# Changes one byte in the device class of a stored verdict. LMDB itself does not notice this damage.
cache=.reftest/cache/data.mdb
cp $cache "$work/whole"
found=0
for at in $(LC_ALL=C grep -abo '"device_class": "cpu"' $cache | cut -d : -f 1); do
	cp "$work/whole" $cache
	printf 'X' | dd of=$cache bs=1 seek="$at" conv=notrunc 2>/dev/null
	run cache check
	[ "$status" = 0 ] || found=$((found + 1)) # an undetected byte lies in a page that is not in use
	[ "$status" = 0 ] || expect_says 'the checksum of the row is wrong'
	[ "$status" = 0 ] || expect_exit 1
done
[ "$found" -ge "$all" ] || fail "check found $found of $all damaged verdicts"
verify # the verdict changed last is still damaged, so it is a miss
expect_exit 0
truncate -s 8192 $cache
run cache check
expect_exit 1
expect_says 'data.mdb'
[ ! -e .reftest/cache.aside-1 ] || fail "check changed something"
