#!/bin/sh
# 3050: a cache file that is truncated, or garbage, or of another version, is set aside with a sentence, never deleted, and the
# verdicts are made anew.
. "$(dirname "$0")/scene.sh"
given tiny_gemm
verify
expect_exit 0
all=$(value "s['cases_run']")
cache=.reftest/cache/data.mdb
cp $cache "$work/whole"

aside=0
damaged() { # by what was just done to the file
	cp $cache "$work/hurt"
	aside=$((aside + 1))
	verify
	expect_exit 0
	expect_ran "$all"
	expect_says "it was set aside as ./.reftest/cache.aside-$aside (delete it when you like)"
	cmp -s "$work/hurt" .reftest/cache.aside-$aside/data.mdb || fail "$step: it is not there as it was"
	verify
	expect_exit 0
	expect_ran 0
	expect_silence_about 'set aside'
}

truncate -s 3000 $cache
damaged
head -c 20000 /dev/urandom >$cache
damaged
{
	head -c 100 /dev/zero
	tail -c +101 "$work/whole"
} >$cache
damaged
# both of its first pages say that LMDB wrote them in version 2 of its format
cp "$work/whole" $cache
for page in 0 4096; do
	printf '\002' | dd of=$cache bs=1 seek=$((page + 20)) conv=notrunc 2>/dev/null
done
damaged
# all of them are still there, and counted
run cache stats --format json
expect "r['aside'] == $aside and r['aside_bytes'] == $(cat .reftest/cache.aside-*/* | wc -c)"
run cache stats
expect_says "$aside older or damaged caches"

# The tail is gone but its head still says what it was: whatever can be read is right, the rest is made anew.
cp "$work/whole" $cache
truncate -s 8192 $cache
verify
expect_exit 0
expect_status tiny_gemm passed
verify
expect_exit 0
expect_ran 0
