#!/bin/sh
# 9200: what one clone verified, another, at another path, finds in a real redis-server: in one batch, without running
# anything, also through TCP with a password and a database; read-only writes nothing; without REFTEST_REMOTE nothing is
# asked.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_norm tiny_gemm
redis_begins
verify
expect_exit 0
all=$(value "s['cases_run']")
[ "$all" -gt 3 ] || fail "that is not much to share: $all cases"
[ "$(redis dbsize)" -ge $((2 * all)) ] || fail "not every verdict lies under its witness and its class: $(redis dbsize)"
[ ! -s "$work/err" ] || fail "$step: it had something to say"

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
[ "$calls" = 1 ] || fail "$all cases were asked for in $calls batches"
redis info commandstats | grep -q 'cmdstat_set:' && fail "what was found there was written there again"

# From now on the clone has them itself, and the remote is not asked any more.
redis config resetstat >/dev/null
verify --cached-only
expect_exit 0
expect_cached "$all"
expect_silence_about redis+unix
redis info commandstats | grep -q 'cmdstat_mget:' && fail "the remote was asked for what is here"
run explain --device "$device" tiny_norm
expect_says 'stored verdict by builtin on cpu'

# Somebody without a torch takes any torch's verdict.
"$python" -m venv --without-pip "$work/bare"
forget
verify --cached-only --python "$work/bare/bin/python"
expect_exit 0
expect_cached "$all"

# --dry-run tells the truth and changes nothing; --force runs, and does not ask.
forget
verify --dry-run
expect_exit 0
expect_cached "$all"
[ ! -e .reftest ] || fail "--dry-run left something behind"
redis config resetstat >/dev/null
verify tiny_gemm --force
expect_exit 0
expect_cached 0
redis info commandstats | grep -q 'cmdstat_mget:' && fail "--force asked the remote"

# Without REFTEST_REMOTE nobody is asked; read-only takes and does not give.
redis flushall >/dev/null
forget
shared=$REFTEST_REMOTE
REFTEST_REMOTE=$shared?read-only
verify tiny_gemm
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "read-only wrote"
unset REFTEST_REMOTE
verify --cached-only tiny_norm
expect_exit 3
expect_cached 0
end_servers
rm -f "$work/redis.sock"

# By TCP, with a password, into database 3. Redis itself knows which ports are free.
port=$("$python" -I -S -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis_begins --port "$port" --bind 127.0.0.1 --requirepass 'pass word'
REFTEST_REMOTE=redis://:pass%20word@127.0.0.1:$port/3
forget
verify tiny_gemm
expect_exit 0
redis -a 'pass word' -n 3 dbsize 2>/dev/null | grep -q '^0$' && fail "nothing lies in database 3"
forget
verify tiny_gemm
expect_ran 0
REFTEST_REMOTE=redis://:wrong@127.0.0.1:$port/3
forget
verify tiny_gemm --cached-only
expect_exit 3
expect_told_once 'AUTH'
expect_silence_about wrong@
end_servers
