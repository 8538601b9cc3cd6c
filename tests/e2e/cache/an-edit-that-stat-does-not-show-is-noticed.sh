#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# reftest notices an edit even if it happens immediately after the file was read, keeps the file's size, and restores
# the mtime.
. "$(dirname "$0")/../harness.sh"
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm
verify
expect_exit 0
cp -p $norm "$work/stamp"
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
touch -r "$work/stamp" $norm
[ "$(wc -c <$norm)" = "$(wc -c <"$work/stamp")" ] || fail "the edit changed the size"
verify --changed
expect_exit 1
expect_status tiny_norm failed numeric
