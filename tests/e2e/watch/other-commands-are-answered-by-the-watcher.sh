#!/bin/sh
# While a watcher runs, `verify --changed` and `explain` get their answer from it. The answer takes every write before
# the command into account. A second watch reports which process already watches the root. Clients do not wait for a
# stopped watcher, and do not use the socket that a killed watcher left. A watcher does not answer a client whose
# options differ from its own.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
watch
watcher=$program
asks() { # asks COMMAND…: runs reftest like `run`, with its own output files
	status=0
	step="reftest $*"
	REFTEST_TRACE=1 "$reftest" "$@" >"$work/answer" 2>"$work/trace" </dev/null || status=$?
}
says() { grep -qF -e "$1" "$work/answer" "$work/trace" || fail "$step: missing: '$1' in: $(cat "$work/answer" "$work/trace")"; }

asks verify --changed --sizes small --device "$device"
expect_exit 0
says '2 definitions: 2 passed; 0 cases run, 7 cached'
says 'ask: the watcher reports 2 definitions as verified'

for epsilon in 1e-4 1e-3 1e-2; do # the query follows the write without a pause
	sed -i "s/EPSILON = 1e-./EPSILON = $epsilon/" definitions/rmsnorm/tiny_norm.json
	asks verify --changed --sizes small --device "$device"
	expect_exit 1
	says 'FAILED   rmsnorm/tiny_norm'
	says '2 definitions: 1 passed, 1 failed; 0 cases run'
	says 'ask: the watcher reports 1 definitions as verified'
done
asks explain tiny_gemm --device "$device"
says 'gemm/tiny_gemm is'
says 'ask: the watcher names 1'
asks explain 'tiny_g*' --device "$device"
says 'gemm/tiny_gemm is'
asks verify --changed --sizes small --seed 3 --device "$device"
expect_exit 1
says 'cases run'
! grep -q 'the watcher reports' "$work/trace" || fail "the watcher reported definitions that it never verified"

sed -i 's/EPSILON = 1e-./EPSILON = 1e-5/' definitions/rmsnorm/tiny_norm.json
asks status --device "$device" # the sizes of `status` are small and medium, and the watcher does not verify medium
says 'stale    gemm/tiny_gemm'
! grep -q 'the watcher reports' "$work/trace" || fail "the watcher reported sizes that it never verified"

asks watch --device "$device"
expect_exit 2
says "is being watched by process $watcher already"
[ "$(stat -c %a .reftest/watch.sock)" = 600 ] || fail "other users can access the socket: $(ls -l .reftest/watch.sock)"

# A stopped watcher does not answer. Forty clients query it, and each of them stops waiting for an answer and does the
# work itself. (SIGSTOP, unlike Ctrl-Z, does not wait for the end of a commit to the cache, and a watcher that is
# stopped during a commit would block all writers. Therefore the test first waits for an answer: once a client has its
# answer, no commit is running.)
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
kill -STOP "$watcher"
step='asked of a stopped watcher'
for _ in $(seq 40); do
	timeout 60 "$reftest" explain tiny_gemm --device "$device" >/dev/null 2>&1 &
	askers="${askers:-} $!"
done
for asker in $askers; do
	wait "$asker" && status=0 || status=$?
	expect_exit 3 # the medium size has no verdict
done
REFTEST_TRACE=1 timeout 60 "$reftest" verify --changed --sizes small --device "$device" >"$work/answer" 2>"$work/trace" &&
	status=0 || status=$?
expect_exit 1
says '1 passed, 1 failed'
! grep -q 'the watcher reports' "$work/trace" || fail "the stopped watcher answered"
kill -CONT "$watcher"
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
: >.reftest/watch.lock # the file lacks the process id: no message suggests to kill process 0
asks watch --device "$device"
expect_exit 2
says 'is being watched by another process already'

kill -KILL "$watcher"
wait "$watcher" 2>/dev/null || true
for left in $(processes); do kill -9 "$left" 2>/dev/null || true; done
[ -S .reftest/watch.sock ] || fail "the watcher was killed, but its socket was removed"
asks verify --changed --sizes small --device "$device"
expect_exit 1
says '1 passed, 1 failed'
! grep -q 'the watcher reports' "$work/trace" || fail "a dead watcher answered"
watch
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
# If there are generated pytest files, the answer says whether they are current at the time of the query, even if the
# files or their definitions changed just before.
asks generate
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
rm tests/references/test_gemm.py
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
[ -f tests/references/test_gemm.py ] || fail "the watcher answered while a generated file was missing"
sed -i 's/EPSILON = 1e-./EPSILON = 1e-7/' definitions/rmsnorm/tiny_norm.json
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
grep -q 'EPSILON = 1e-7' tests/references/test_rmsnorm.py || fail "the watcher answered while a generated file was out of date"
[ -f tests/references/test_gemm.py ] || fail "verify removed generated files"
echo '# mine' >>tests/references/test_gemm.py
asks verify --changed --sizes small --device "$device"
! grep -q 'the watcher reports' "$work/trace" || fail "the watcher answered although a generated file had been edited"
says 'test_gemm.py has been edited since'
rm -r tests/references .reftest/artifacts
end_watch
begin watch --json --device "$device" --jobs 1 # small and medium, as for status
echo 0 >"$work/awaited"
await "e['event'] == 'ready'"
asks status --device "$device"
says 'ask: the watcher reports 1 definitions as verified'
sed '/definitions:/s/;.*//' "$work/answer" >"$work/asked"
end_watch
asks status --device "$device"
sed '/definitions:/s/;.*//' "$work/answer" >"$work/alone"
cmp -s "$work/asked" "$work/alone" || fail "the watcher's table differs: $(diff "$work/asked" "$work/alone")"
[ ! -e .reftest/watch.sock ] || fail "the watcher exited and left its socket"
