#!/bin/sh
# own interpreter: the test checks how processes end.
# If SIGTERM ends watch while a reference loops forever, no process remains, and all finished verdicts are stored.
# `watch --once` ends by itself with the exit status of the result. The command of --exec gets the names of the
# definitions that were verified. If this command writes files below .reftest, watch does not verify anything again.
. "$(dirname "$0")/../harness.sh"
with_gates
given tiny_gemm
watch
define loops <<END
def run(hidden_states, weight):
    tell_started()
    while True:
        pass
END
started
kill -TERM "$program"
ended
expect_exit 130
expect_no_process
rm definitions/rmsnorm/loops.json

run watch --once --sizes small --device "$device"
expect_exit 0
expect_says '1 definition, 1 passed'
given tiny_norm
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
run watch --once --sizes small --device "$device"
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm' 'at [' "reftest verify rmsnorm/tiny_norm --case 'small:"
! grep -q "$(printf '\033')" "$work/out" "$work/err" || fail "it wrote escape sequences without a terminal"

# The test sets these environment variables, as if the --exec command of another watcher had started this watcher.
export REFTEST_NAMES=outer REFTEST_COUNT=77 REFTEST_INVALID=77
watch --exec "printf '%s %s %s\n' \"\$REFTEST_NAMES\" \"\$REFTEST_PASSED\" \"\$REFTEST_FAILED\" >>$work/exec; : >.reftest/mine
	printf '%s;' \$REFTEST_NAMES \$REFTEST_COUNT \$REFTEST_PASSED \$REFTEST_FAILED \$REFTEST_ERROR \$REFTEST_SKIPPED \
		\$REFTEST_INVALID >>$work/all; echo >>$work/all"
await "e['event'] == 'exec'"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'exec'"
expect_events "e['ended'] == 'exit status 0'"
[ "$(tail -n 1 "$work/exec")" = 'rmsnorm/tiny_norm 1 0' ] || fail "the command of --exec got: $(cat "$work/exec")"
touch definitions/gemm/tiny_gemm.json # changes the times of the file, not its content
edit definitions/gemm/tiny_gemm.json '"description": "' '"description": "A '
await_batch
expect_events "[x['name'] for x in a if x['event'] == 'verdict'] == ['tiny_gemm']"
await "e['event'] == 'exec'"
kill -STOP "$program" # stops the watcher, so that both edits are in one batch
edit definitions/gemm/tiny_gemm.json '"description": "A ' '"description": "'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = nothing'
kill -CONT "$program"
await "e['event'] == 'exec'"
expectations=$((expectations + 1))
[ "$(tail -n 1 "$work/all")" = 'gemm/tiny_gemm;rmsnorm/tiny_norm;2;1;0;1;0;0;' ] || fail "the command of --exec got: $(cat "$work/all")"
expectations=$((expectations + 1))
[ "$(grep -c '"event": "changed"' "$work/out")" = 3 ] || fail "something other than the edits caused a batch"
end_watch
run watch some_name
expect_exit 2
