#!/bin/sh
# 7100: with a watcher running, verify --changed and explain ask it, and hear of every write made before; a second watch says
# who holds the root; one that is stopped is not waited for, and one that was killed leaves a socket that nobody takes for one;
# other options are not its business.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
watch
watcher=$program
asks() { # asks COMMAND…: the same as `run`, with what it says kept apart from the watcher's
	status=0
	step="reftest $*"
	REFTEST_TRACE=1 "$reftest" "$@" >"$work/answer" 2>"$work/trace" </dev/null || status=$?
}
says() { grep -qF -e "$1" "$work/answer" "$work/trace" || fail "$step: nothing says '$1' in: $(cat "$work/answer" "$work/trace")"; }

asks verify --changed --sizes small --device "$device"
expect_exit 0
says '2 definitions: 2 passed; 0 cases run, 7 cached'
says 'ask: the watcher vouches for 2'

for epsilon in 1e-4 1e-3 1e-2; do # the question follows the write at once
	sed -i "s/EPSILON = 1e-./EPSILON = $epsilon/" definitions/rmsnorm/tiny_norm.json
	asks verify --changed --sizes small --device "$device"
	expect_exit 1
	says 'FAILED   rmsnorm/tiny_norm'
	says '2 definitions: 1 passed, 1 failed; 0 cases run'
	says 'ask: the watcher vouches for 1'
done
asks explain tiny_gemm --device "$device"
says 'gemm/tiny_gemm is'
says 'ask: the watcher names 1'
asks explain 'tiny_g*' --device "$device"
says 'gemm/tiny_gemm is'
asks verify --changed --sizes small --seed 3 --device "$device"
expect_exit 1
says 'cases run'
! grep -q 'vouches' "$work/trace" || fail "it vouched for what it never verified"

sed -i 's/EPSILON = 1e-./EPSILON = 1e-5/' definitions/rmsnorm/tiny_norm.json
asks status --device "$device" # its sizes are small and medium: another question
says 'stale    gemm/tiny_gemm'
! grep -q 'vouches' "$work/trace" || fail "it vouched for sizes that it never verified"

asks watch --device "$device"
expect_exit 2
says "is being watched by process $watcher already"
[ "$(stat -c %a .reftest/watch.sock)" = 600 ] || fail "others may ask: $(ls -l .reftest/watch.sock)"

# Somebody stopped it: a watcher that stands still is not waited for, by however many. (Not in the middle of a commit, where it
# would hold up all who write; Ctrl-Z waits for the end of that, SIGSTOP for nothing. Who has its answer knows that it is over.)
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
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
! grep -q 'vouches' "$work/trace" || fail "a stopped watcher vouched"
kill -CONT "$watcher"
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
: >.reftest/watch.lock # its number is not there: nobody is told to kill process 0
asks watch --device "$device"
expect_exit 2
says 'is being watched by another process already'

kill -KILL "$watcher"
wait "$watcher" 2>/dev/null || true
for left in $(processes); do kill -9 "$left" 2>/dev/null || true; done
[ -S .reftest/watch.sock ] || fail "it was killed, and yet its socket is gone"
asks verify --changed --sizes small --device "$device"
expect_exit 1
says '1 passed, 1 failed'
! grep -q 'vouches' "$work/trace" || fail "a dead watcher vouched"
watch
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
# Where pytest files were generated the answer includes that they are current: whatever was done to them or to what they
# are made of before the question.
asks generate
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
rm tests/references/test_gemm.py
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
[ -f tests/references/test_gemm.py ] || fail "the watcher vouched where a generated file was missing"
sed -i 's/EPSILON = 1e-./EPSILON = 1e-7/' definitions/rmsnorm/tiny_norm.json
asks verify --changed --sizes small --device "$device"
says 'ask: the watcher vouches for 1'
grep -q 'EPSILON = 1e-7' tests/references/test_rmsnorm.py || fail "the watcher vouched for a generated file of an old text"
[ -f tests/references/test_gemm.py ] || fail "verify took generated files away"
echo '# mine' >>tests/references/test_gemm.py
asks verify --changed --sizes small --device "$device"
! grep -q 'vouches' "$work/trace" || fail "it vouched for a generated file that somebody edited"
says 'test_gemm.py was edited since'
rm -r tests/references .reftest/artifacts
end_watch
begin watch --json --device "$device" --jobs 1 # small and medium, as status has it
echo 0 >"$work/heard"
await "e['event'] == 'ready'"
asks status --device "$device"
says 'ask: the watcher vouches for 1'
sed '/definitions:/s/;.*//' "$work/answer" >"$work/asked"
end_watch
asks status --device "$device"
sed '/definitions:/s/;.*//' "$work/answer" >"$work/alone"
cmp -s "$work/asked" "$work/alone" || fail "the watcher's table differs: $(diff "$work/asked" "$work/alone")"
[ ! -e .reftest/watch.sock ] || fail "it ended and left its socket"
