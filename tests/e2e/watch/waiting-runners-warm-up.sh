#!/bin/sh
# A runner that waits for its next reference rehearses a run inside its sandbox, so that a save is answered sooner. The
# sandbox must allow every step of the rehearsal.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
export REFTEST_TRACE=1
watch
for round in 1 2 3 4 5 6 7 8 9 10; do
	sleep "$round" # until the new runner has warmed up, even on a busy machine
	edit definitions/rmsnorm/tiny_norm.json '\n    rows =' '\n    _ = 0\n    rows ='
	await_batch
	! grep -q 'warm-up: failed' "$work/err" || fail "the rehearsal failed: $(grep 'warm-up' "$work/err")"
	! grep -q 'warm-up: complete' "$work/err" || break
done
grep -q 'warm-up: complete' "$work/err" || fail "no runner warmed up completely: $(grep 'warm-up' "$work/err")"
end_watch
