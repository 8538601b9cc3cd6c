#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If a cache file is truncated, filled with garbage or in the format of another version, reftest renames the file and
# reports it, but never deletes it. The verdicts are computed again.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm
verify
expect_exit 0
all=$(value "s['cases_run']")
cache=.reftest/cache/data.mdb
cp $cache "$work/whole"

aside=0
damaged() { # damaged: expects that the damaged file is set aside and that every case runs again
	cp $cache "$work/hurt"
	aside=$((aside + 1))
	verify
	expect_exit 0
	expect_ran "$all"
	expect_says "it was set aside as ./.reftest/cache.aside-$aside (which you may delete)"
	cmp -s "$work/hurt" .reftest/cache.aside-$aside/data.mdb || fail "$step: the cache that was set aside differs from the damaged one"
	verify
	expect_exit 0
	expect_ran 0
	expect_silence_about 'set aside'
}

truncate -s 3000 $cache
damaged
"$python" -I -S -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(20000))' >$cache
damaged
{
	head -c 100 /dev/zero
	tail -c +101 "$work/whole"
} >$cache
damaged
# In the first two pages of the cache file, LMDB's format number is set to 2.
cp "$work/whole" $cache
for page in 0 4096; do
	printf '\002' | dd of=$cache bs=1 seek=$((page + 20)) conv=notrunc 2>/dev/null
done
damaged
# All renamed caches still exist, and `cache stats` counts them.
run cache stats --format json
expect "r['aside'] == $aside and r['aside_bytes'] == $(cat .reftest/cache.aside-*/* | wc -c)"
run cache stats
expect_says "$aside older or damaged caches"

# The end of the file is missing, but its header is intact. Every verdict that can still be read is correct, and the
# cases of the lost verdicts run again.
cp "$work/whole" $cache
truncate -s 8192 $cache
verify
expect_exit 0
expect_status tiny_gemm passed
verify
expect_exit 0
expect_ran 0
