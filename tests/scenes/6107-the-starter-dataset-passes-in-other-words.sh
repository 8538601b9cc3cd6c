#!/bin/sh
# 6107: each definition of the starter dataset, with its inputs under other names and in another order and its outputs in
# another, is known by its op family and passes.
. "$(dirname "$0")/scene.sh"
"$python" "$top/bench/other_words.py" "$top" .
[ "$(ls definitions/*/*_in_other_words.json | wc -l)" = "$(ls "$top"/definitions/*/*.json | wc -l)" ] || fail "some are missing"
verify --ground-truth builtin
expect_exit 0
expect "len(d) > 80 and all(one['status'] == 'passed' for one in d.values())"
expect_cached 0
