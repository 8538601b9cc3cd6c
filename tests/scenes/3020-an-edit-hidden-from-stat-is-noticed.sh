#!/bin/sh
# 3020: an edit of the same size, right after the file was read and with its old mtime put back, is noticed.
. "$(dirname "$0")/scene.sh"
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm
verify
expect_exit 0
cp -p $norm "$work/stamp"
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
touch -r "$work/stamp" $norm
[ "$(wc -c <$norm)" = "$(wc -c <"$work/stamp")" ] || fail "the edit was to keep the size"
verify --changed
expect_exit 1
expect_status tiny_norm failed numeric
