#!/bin/sh
# 7105: who asks a watcher that is busy for long is told by one sentence what is being waited for; Ctrl-C ends the one who asks
# and costs the watcher nothing; with --alone it is not asked; and who goes on waiting gets the answer.
. "$(dirname "$0")/scene.sh"
with_gates
given tiny_gemm
watch
watcher=$program
descriptors() { ls "/proc/$watcher/fd" | wc -l; }
define slow <<PYTHON
import torch


def run(hidden_states, weight):
    gate("$work/started", "$work/go")
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
PYTHON
started
before=$(descriptors)
asks() { # asks NUMBER: in the background, in a process that Ctrl-C may end; what it says is kept apart
	"$python" -I -S -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL) # a shell without job control has its background ignore it
os.execv(sys.argv[1], sys.argv[1:])' "$reftest" verify --changed --sizes small --device "$device" >"$work/answer$1" 2>"$work/told$1" </dev/null &
}
told() { # told NUMBER: waits for the sentence
	expectations=$((expectations + 1))
	for _ in $(seq 1200); do
		if grep -q -- --alone "$work/told$1"; then return 0; fi
		sleep 0.05
	done
	fail "who asked was told nothing"
}
asks 1
asker=$!
asks 2
patient=$!
told 1
told 2
grep -qF "waiting for the watcher of . (process $watcher), which has 1 of 1 definition to verify yet (slow now);" "$work/told1" ||
	fail "it was told: $(cat "$work/told1")"
kill -INT "$asker"
wait "$asker" && status=0 || status=$?
expect_exit 130
timeout 60 "$reftest" status --alone --device "$device" >"$work/alone" 2>&1 && status=0 || status=$?
expect_exit 3
grep -q 'stale    rmsnorm/slow' "$work/alone" || fail "alone it said: $(cat "$work/alone")"
for command in 'verify --changed --cached-only --sizes small' 'explain slow'; do
	step="reftest $command --alone"
	REFTEST_TRACE=1 timeout 20 "$reftest" $command --alone --device "$device" >"$work/alone" 2>&1 && status=0 || status=$?
	expect_exit 3
	! grep -q 'the watcher' "$work/alone" || fail "$step: it asked the watcher: $(cat "$work/alone")"
done
for _ in $(seq 1200); do
	[ "$(descriptors)" -gt $((before + 1)) ] || break # one asks yet
	sleep 0.05
done
[ "$(descriptors)" -le $((before + 1)) ] || fail "the watcher keeps a descriptor of who went away: $(ls -l "/proc/$watcher/fd")"
: >"$work/go"
wait "$patient" && status=0 || status=$?
expect_exit 0
expectations=$((expectations + 1))
[ "$(wc -l <"$work/told2")" = 1 ] || fail "it was told: $(cat "$work/told2")"
grep -q '2 definitions: 2 passed; 0 cases run' "$work/answer2" || fail "it was answered: $(cat "$work/answer2")"
program=$watcher
end_watch
expect_nothing_to_do
