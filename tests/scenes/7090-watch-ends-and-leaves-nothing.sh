#!/bin/sh
# 7090: SIGTERM while a reference loops for ever ends watch with nothing left behind, and keeps what was verified; --once ends
# by itself with the exit code of what it found; --exec is given the names, and its own writes below .reftest wake nobody.
. "$(dirname "$0")/scene.sh"
given tiny_gemm
watch
define loops <<END
def run(hidden_states, weight):
    open("$work/started", "w").close()
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
! grep -q "$(printf '\033')" "$work/out" "$work/err" || fail "it wrote for a terminal where there is none"

export REFTEST_NAMES=outer REFTEST_COUNT=77 REFTEST_INVALID=77 # as the command of another watcher has them
watch --exec "printf '%s %s %s\n' \"\$REFTEST_NAMES\" \"\$REFTEST_PASSED\" \"\$REFTEST_FAILED\" >>$work/exec; : >.reftest/mine
	printf '%s;' \$REFTEST_NAMES \$REFTEST_COUNT \$REFTEST_PASSED \$REFTEST_FAILED \$REFTEST_ERROR \$REFTEST_SKIPPED \
		\$REFTEST_INVALID >>$work/all; echo >>$work/all"
await "e['event'] == 'exec'"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'exec'"
heard "e['ended'] == 'exit status 0'"
[ "$(tail -n 1 "$work/exec")" = 'rmsnorm/tiny_norm 1 0' ] || fail "--exec was given: $(cat "$work/exec")"
touch definitions/gemm/tiny_gemm.json # no news
edit definitions/gemm/tiny_gemm.json '"description": "' '"description": "A '
await_batch
heard "[x['name'] for x in a if x['event'] == 'verdict'] == ['tiny_gemm']"
await "e['event'] == 'exec'"
kill -STOP "$program" # so that both edits are one batch
edit definitions/gemm/tiny_gemm.json '"description": "A ' '"description": "'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = nothing'
kill -CONT "$program"
await "e['event'] == 'exec'"
expectations=$((expectations + 1))
[ "$(tail -n 1 "$work/all")" = 'gemm/tiny_gemm;rmsnorm/tiny_norm;2;1;0;1;0;0;' ] || fail "--exec was given: $(cat "$work/all")"
expectations=$((expectations + 1))
[ "$(grep -c '"event": "changed"' "$work/out")" = 3 ] || fail "something but the edits woke it"
end_watch
run watch some_name
expect_exit 2
