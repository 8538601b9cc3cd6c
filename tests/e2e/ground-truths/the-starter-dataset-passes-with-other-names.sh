#!/bin/sh
# Each definition of the starter dataset is recognized by its op family and passes after its inputs are renamed and
# reordered and its outputs reordered.
. "$(dirname "$0")/../harness.sh"
"$python" "$top/bench/other_words.py" "$top" .
[ "$(ls definitions/*/*_in_other_words.json | wc -l)" = "$(ls "$top"/definitions/*/*.json | wc -l)" ] || fail "some definitions are missing"
verify --ground-truth builtin
expect_exit 0
expect "len(d) > 80 and all(one['status'] == 'passed' for one in d.values())"
expect_cached 0
