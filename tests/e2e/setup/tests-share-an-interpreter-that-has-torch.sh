#!/bin/sh
# own interpreter: the test checks the interpreters that other tests share.
# The server (tests/imported_torch/server.py) imports torch once and forks a process for each client. The process gets
# the arguments, the environment, the working directory and the file descriptors of its client. The client ends with the
# exit status of its process. If a client is killed, the server kills its process. If a client's interpreter differs
# from the interpreter of the server, the client runs its script without the server.
. "$(dirname "$0")/../harness.sh"
"$python" -sSu - "$work/server" <"$top/tests/imported_torch/server.py" >"$work/said" 2>"$work/warned" &
server=$!
sessions="$sessions $server"
while [ ! -S "$work/server" ] && kill -0 "$server" 2>/dev/null; do sleep 0.1; done
cat >"$work/deed.py" <<'P'
import os, signal, sys, time

before = "torch" in sys.modules
{"tell": lambda: print(before, sys.argv[2], os.environ["GIVEN"], os.getcwd(), input(), sys.warnoptions),
 "exit": lambda: sys.exit(7),
 "raise": lambda: 1 / 0,
 "die": lambda: os.kill(os.getpid(), signal.SIGSEGV),
 "stay": lambda: (print(os.getpid(), flush=True), time.sleep(600))}[sys.argv[1]]()
P
cat >"$work/client.py" <<P
import sys
sys.path.insert(0, "$top/tests/imported_torch")
import client
sys.path[:1] = ["$work"]
sys.exit(client.main("none", 3, module="deed"))
P
export REFTEST_TEST_TORCH="$work/server" GIVEN=given PYTHONPATH="$work" PYTHONDONTWRITEBYTECODE=1
deed() { # deed STATUS WORD…: runs the client, and expects that it ends with this status
	wanted=$1
	shift
	step="the client with $*"
	echo read | "$python" "$work/client.py" "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
	expect_exit "$wanted"
}
deed 0 tell 'two words'
expect_says "True two words given $root read []"
deed 7 exit
deed 1 raise
expect_says ZeroDivisionError
deed 139 die

# `reftest verify` gets its interpreters from the server. A client that runs in another interpreter does
# not use the server.
given tiny_norm
export REFTEST_RUNNER="$top/tests/imported_torch/runner.py"
verify
expect_exit 0
"$python" -m venv --without-pip --system-site-packages "$work/other" || fail "there is no venv"
python=$work/other/bin/python3
echo read | "$python" "$work/client.py" tell 'two words' >"$work/out" 2>"$work/err" || fail "the other interpreter fails"
expect_says "False two words given"
python=$top/.venv/bin/python
[ -x "$python" ] || python=${REFTEST_PYTHON:-$(command -v python3)}

# A client is killed.
rm "$work/out"
step="a killed client"
"$python" "$work/client.py" stay >"$work/out" 2>"$work/err" &
client=$!
while [ ! -s "$work/out" ]; do sleep 0.05; done
process=$(cat "$work/out")
kill -0 "$process" || fail "there is no process"
kill -9 "$client"
for _ in $(seq 200); do
	kill -0 "$process" 2>/dev/null || break
	sleep 0.05
done
! kill -0 "$process" 2>/dev/null || fail "the process outlives its client"

# The server counts the processes that it started, and ends all of them.
kill "$server"
wait "$server" || fail "the server fails"
grep -q '^imported_torch: interpreters: 6 (' "$work/said" || fail "the server says $(cat "$work/said")"
