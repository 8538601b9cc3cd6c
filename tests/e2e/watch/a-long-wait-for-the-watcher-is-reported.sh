#!/bin/sh
# A client that waits long for a busy watcher prints one message that says why it waits. Ctrl-C ends only the client,
# --alone does not query the watcher, and a client that continues to wait gets its answer.
. "$(dirname "$0")/../harness.sh"
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
asks() { # asks NUMBER: runs a client in the background, in a process that Ctrl-C can end, with its own output files
	"$python" -I -S -c '
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL) # a shell without job control starts background jobs with SIGINT ignored
os.execv(sys.argv[1], sys.argv[1:])' "$reftest" verify --changed --sizes small --device "$device" >"$work/answer$1" 2>"$work/message$1" </dev/null &
}
has_message() { # has_message NUMBER: waits for the message of that client
	expectations=$((expectations + 1))
	for _ in $(seq 1200); do
		if grep -q -- --alone "$work/message$1"; then return 0; fi
		sleep 0.05
	done
	fail "the client printed no message"
}
asks 1
asker=$!
asks 2
patient=$!
has_message 1
has_message 2
grep -qF "waiting for the watcher of . (process $watcher), which still has to verify 1 of 1 definition (slow now);" "$work/message1" ||
	fail "it printed: $(cat "$work/message1")"
kill -INT "$asker"
wait "$asker" && status=0 || status=$?
expect_exit 130
timeout 60 "$reftest" status --alone --device "$device" >"$work/alone" 2>&1 && status=0 || status=$?
expect_exit 3
grep -q 'unknown  rmsnorm/slow' "$work/alone" || fail "with --alone it printed: $(cat "$work/alone")"
for command in 'verify --changed --cached-only --sizes small' 'explain slow'; do
	step="reftest $command --alone"
	REFTEST_TRACE=1 timeout 20 "$reftest" $command --alone --device "$device" >"$work/alone" 2>&1 && status=0 || status=$?
	expect_exit 3
	! grep -q 'the watcher' "$work/alone" || fail "$step: it queried the watcher: $(cat "$work/alone")"
done
for _ in $(seq 1200); do
	[ "$(descriptors)" -gt $((before + 1)) ] || break # one client is still waiting
	sleep 0.05
done
[ "$(descriptors)" -le $((before + 1)) ] || fail "the watcher leaks the descriptor of a client that exited: $(ls -l "/proc/$watcher/fd")"
: >"$work/go"
wait "$patient" && status=0 || status=$?
expect_exit 0
expectations=$((expectations + 1))
[ "$(wc -l <"$work/message2")" = 1 ] || fail "it printed: $(cat "$work/message2")"
grep -q '2 definitions: 2 passed; 0 cases run' "$work/answer2" || fail "the answer is: $(cat "$work/answer2")"
program=$watcher
end_watch
expect_nothing_to_do
