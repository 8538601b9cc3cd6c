#!/bin/sh
# If the inputs of a definition of the starter dataset are renamed and reordered, and its outputs are reordered, its op
# family still recognizes it, and it passes.
. "$(dirname "$0")/../harness.sh"
"$python" "$top/bench/other_words.py" "$top" .
[ "$(ls definitions/*/*_in_other_words.json | wc -l)" = "$(ls "$top"/definitions/*/*.json | wc -l)" ] || fail "some definitions are missing"
verify --ground-truth builtin
expect_exit 0
expect "len(d) > 80 and all(one['status'] == 'passed' for one in d.values())"
expect_cached 0
