#!/bin/sh
# Through a real redis-server, a clone at another path finds the verdicts of the first clone, with one request and
# without running a case. Sharing also works through TCP with a password and a database number. In read-only mode
# nothing is written, and without REFTEST_REMOTE no remote is used.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
redis_begins
verify
expect_exit 0
all=$(value "s['cases_run']")
[ "$all" -gt 3 ] || fail "too few cases for this test: $all"
[ "$(redis dbsize)" -ge $((2 * all)) ] || fail "not every verdict is stored under both of its keys: $(redis dbsize)"
[ ! -s "$work/err" ] || fail "$step: unexpected message"

mkdir "$work/clone"
cp -r definitions workloads "$work/clone"
[ ! -d blob ] || cp -r blob "$work/clone"
cd "$work/clone"
redis config resetstat >/dev/null
verify
expect_exit 0
expect_ran 0
expect_cached "$all"
expect "all('redis+unix://' in case['why'] for case in c.values())"
calls=$(redis info commandstats | tr -d '\r' | sed -n 's/^cmdstat_mget:calls=\([0-9]*\),.*/\1/p')
[ "$calls" = 1 ] || fail "$all cases were requested in $calls batches"
redis info commandstats | grep -q 'cmdstat_set:' && fail "verdicts from the remote were written to it again"

# Now the clone has stored the verdicts locally, and no longer queries the remote.
redis config resetstat >/dev/null
verify --cached-only
expect_exit 0
expect_cached "$all"
expect_silence_about redis+unix
redis info commandstats | grep -q 'cmdstat_mget:' && fail "the remote was queried for verdicts that the cache has"
run explain --device "$device" tiny_norm
expect_says 'stored verdict by builtin on cpu'

# A machine without torch accepts a verdict whatever version of torch computed it.
"$python" -m venv --without-pip "$work/bare"
forget
verify --cached-only --python "$work/bare/bin/python"
expect_exit 0
expect_cached "$all"

# --dry-run reports the right result and changes nothing. --force runs all cases and does not query the remote.
forget
verify --dry-run
expect_exit 0
expect_cached "$all"
[ ! -e .reftest ] || fail "--dry-run left a file behind"
redis config resetstat >/dev/null
verify tiny_gemm --force
expect_exit 0
expect_cached 0
redis info commandstats | grep -q 'cmdstat_mget:' && fail "--force queried the remote"

# Without REFTEST_REMOTE, no remote is queried. In read-only mode, the remote is read but not written.
redis flushall >/dev/null
forget
shared=$REFTEST_REMOTE
REFTEST_REMOTE=$shared?read-only
verify tiny_gemm
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "a read-only remote was written to"
unset REFTEST_REMOTE
verify --cached-only tiny_norm
expect_exit 3
expect_cached 0
end_servers
rm -f "$work/redis.sock"

# The remote is redis through TCP, with a password and database 3.
redis_on_port_begins --requirepass 'pass word'
REFTEST_REMOTE=redis://:pass%20word@127.0.0.1:$port/3
forget
verify tiny_gemm
expect_exit 0
redis -a 'pass word' -n 3 dbsize 2>/dev/null | grep -q '^0$' && fail "database 3 is empty"
forget
verify tiny_gemm
expect_ran 0
REFTEST_REMOTE=redis://:wrong@127.0.0.1:$port/3
forget
verify tiny_gemm --cached-only
expect_exit 3
expect_reported_once 'AUTH'
expect_silence_about wrong@
end_servers
