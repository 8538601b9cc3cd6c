#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build. While a stopped process has locked the cache,
# verify, watch, `cache gc`, `cache import` and `status` wait. Each of these commands reports for which process it
# waits, and how to release the lock. After the lock is released, all commands complete normally.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
verify
expect_exit 0
"$reftest" cache export "$work/verdicts" 2>/dev/null || fail "the export exited with $?"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 2e-6 / 2'

"$python" -I -S -c '
import fcntl, os, signal
fcntl.flock(os.open(".reftest", os.O_RDONLY), fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)' &
holder=$!
for _ in $(seq 1200); do
	case $(cat "/proc/$holder/stat") in *') T '*) break ;; esac
	sleep 0.05
done
waits() { # waits NAME WORD…: runs reftest in the background, with its own output files
	name=$1
	shift
	setsid "$reftest" "$@" >"$work/out.$name" 2>"$work/err.$name" </dev/null &
	eval "process_$name=$!"
	sessions="$sessions $!"
}
waits verify verify --alone --device "$device" --sizes small
waits gc cache gc
waits import cache import "$work/verdicts"
waits status status --alone --device "$device"
begin watch --json --device "$device" --sizes small --jobs 1
for name in verify gc import status; do
	expectations=$((expectations + 1))
	for _ in $(seq 1200); do
		if grep -q "locked by process $holder, which is stopped: .kill -CONT $holder" "$work/err.$name"; then continue 2; fi
		sleep 0.05
	done
	fail "$name printed no message: $(cat "$work/err.$name")"
done
for _ in $(seq 1200); do
	if grep -q "locked by process $holder, which is stopped" "$work/err"; then break; fi
	sleep 0.05
done
expect_says "kill -CONT $holder"
kill -CONT "$holder"
wait "$holder" || fail "the process that held the cache exited with $?"
echo 0 >"$work/awaited"
await "e['event'] == 'ready'"
expect_events "e['passed'] == 1"
end_watch
for name in verify gc import status; do
	eval "wait \$process_$name" && status=0 || status=$?
	step="$name that had waited: $(cat "$work/err.$name")"
	[ $name = status ] || expect_exit 0 # the exit status of `status` depends on which commands ran before
done
expect_nothing_to_do
