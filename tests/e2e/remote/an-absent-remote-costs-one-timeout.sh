#!/bin/sh
# A run completes even if no server listens, if the server never answers, if the client library is missing, or if the
# URL's host or scheme does not exist. The run waits for at most one timeout, however many verdicts it reads and writes,
# and prints one message.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
unset REFTEST_REMOTE
verify
expect_exit 0
all=$(value "s['cases_run']")
cp -r .reftest "$work/full"
export REFTEST_REMOTE

missing() { # missing URL MS SENTENCE: expects the message, and the end of the run within MS milliseconds
	forget
	REFTEST_REMOTE=$1
	expect_within "$2" verify --cached-only
	expect_exit 3
	expect_reported_once "$3"
}
# The default timeout is 5 s. A run that ends earlier has not waited for the timeout.
refusing_port_begins
missing "redis://127.0.0.1:$port" 4500 'cannot be reached'
missing "redis+unix://$work/no.sock" 4500 'cannot be reached'
missing "http://127.0.0.1:$port/x" 4500 'cannot be queried'
missing "redis://user:hidden@127.0.0.1:$port" 4500 'cannot be reached'
expect_silence_about hidden
missing "http://no-such-host.invalid/?timeout=1" 3500 'the remote cache http://no-such-host.invalid'
missing "redis://no-such-host.invalid/?timeout=1" 3500 'the remote cache redis://no-such-host.invalid'
missing "nowhere://example/x" 4500 'REFTEST_REMOTE has no valid scheme'
missing "http://127.0.0.1:$port/x?readonly" 4500 "option 'readonly'"

# If every verdict is stored locally, the remote is not queried, so there is no wait and no message.
rm -rf .reftest
cp -r "$work/full" .reftest
REFTEST_REMOTE=redis://127.0.0.1:$port
verify --cached-only
expect_exit 0
expect_cached "$all"
[ ! -s "$work/err" ] || fail "$step: unexpected message"

# If a server accepts connections and never answers, all queries of a run together wait for one timeout, and the run
# writes nothing to the remote.
server_begins "$top/tests/fake_remotes/redis_liar.py" silent
forget
REFTEST_REMOTE=redis://127.0.0.1:$port?timeout=4
verify
expect_exit 0
expect_ran "$all"
expect_reported_once 'did not answer within 4 s'
forget
expect_within 7500 verify --cached-only
expect_exit 3
forget
REFTEST_REMOTE="http://127.0.0.1:$port/x?timeout=4"
expect_within 7500 verify --cached-only
expect_exit 3
expect_reported_once 'did not answer within 4 s'

# The helper process talks to the remote. If it hangs, in its own code or in a library, the run waits for at most one
# timeout.
helper_stops() {
	for child in $(cat "/proc/$program/task/$program/children"); do
		grep -qsx reftest-remote "/proc/$child/comm" || continue
		kill -STOP "$child"
		return 0
	done
	return 1
}
forget
REFTEST_REMOTE=redis://127.0.0.1:$port?timeout=5
begin verify --device "$device" --sizes small --format json --cached-only
until_true helper_stops
expect_within 9500 ended
expect_exit 3
expect_reported_once 'did not answer within 5 s'

# Ctrl-C does not wait for the helper process either.
forget
REFTEST_REMOTE=redis://127.0.0.1:$port?timeout=60
begin verify --device "$device" --sizes small --format json
sleep 1
kill -INT "$program"
expect_within 20000 ended
expect_exit 130
end_servers

# A build without the client library names the missing library, and still verifies.
mkdir "$work/plain"
for library in "$build"/libreftest_kernels*.so; do ln -s "$library" "$work/plain/"; done
REFTEST_KERNELS=$work/plain
export REFTEST_KERNELS
missing "redis://127.0.0.1:$port" 2000 'libhiredis-dev'
run doctor
expect_says 'without  remote cache'
unset REFTEST_REMOTE
verify --cached-only
expect_exit 3
[ ! -s "$work/err" ] || fail "$step: unexpected message"
