#!/bin/sh
# If the reader of a pipe ends early, reftest ends by SIGPIPE without a message, as other Unix tools do. verify stores
# the verdicts of the finished cases. If the output goes to a file and the disk is full, this is an error.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm

# `into_nothing ARGUMENT…`: runs reftest with its standard output connected to a pipe whose other end is closed
into_nothing() {
	step="reftest $* with a closed pipe"
	"$python" -I -S - "$reftest" "$@" >"$work/out" 2>"$work/err" <<'P' && status=0 || status=$?
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
# Python ignores SIGPIPE; the child must not inherit this
sys.exit(-subprocess.run(sys.argv[1:], stdout=writer, stdin=subprocess.DEVNULL, restore_signals=True).returncode)
P
}
silent_by_signal() {
	expect_exit 13
	[ ! -s "$work/err" ] || fail "$step: it prints a message"
}

for command in 'status --device cpu' 'explain --device cpu tiny_norm' check 'verify --dry-run' 'verify --format json --dry-run' \
	'doctor' 'verify --help'; do
	# shellcheck disable=SC2086 # words
	into_nothing $command
	silent_by_signal
done
into_nothing verify --device "$device" --sizes small --jobs 1
silent_by_signal
verify
expect_exit 0
expect "s['cases_cached'] > 0"
[ -w /dev/full ] || skip "there is no /dev/full here"
step='reftest status on a full disk'
"$reftest" status --device cpu >/dev/full 2>"$work/err" && status=0 || status=$?
expect_exit 4
expect_says 'cannot write the results: No space left on device'
