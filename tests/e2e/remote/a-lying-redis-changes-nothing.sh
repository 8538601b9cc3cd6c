#!/bin/sh
# Tests a redis server on which somebody has changed the values, and servers that send answers that redis never sends.
# reftest accepts no changed value, uses a limited amount of time and memory, and prints one message.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
redis_begins --proto-max-bulk-len 64mb
verify
expect_exit 0
all=$(value "s['cases_run']")
redis keys 'reftest:*' | sort >"$work/keys"
first=$(head -n 1 "$work/keys")

untrue() { # untrue SENTENCE: expects that none of the stored values is accepted, and that this message is printed
	forget
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_reported_once "$1"
}
# `each COMMAND`: runs the command for every $key.
each() {
	while read -r key <&3; do
		eval "$1" >/dev/null || fail "redis rejected the command: $1"
	done 3<"$work/keys"
}
mkdir "$work/true"
each 'redis --raw get $key | head -c -1 >"$work/true/$key"'
each 'redis setrange $key 900 XX'
untrue 'checksum'
each 'redis set $key garbage'
untrue 'treated as missing'
each 'head -c 1000 "$work/true/$key" | redis -x set $key'
untrue 'the record is incomplete'
each '{ cat "$work/true/$key" && head -c 1000 /dev/zero; } | redis -x set $key'
untrue 'the record is incomplete'
each 'head -c 1000000 /dev/zero | redis -x set $key'
untrue 'longer than a verdict can be'
each 'redis del $key && redis rpush $key a b' # a value of another type: MGET returns nil
forget
verify --cached-only
expect_exit 3
[ ! -s "$work/err" ] || fail "$step: unexpected message"
# The value of one key is stored under all other keys, too. reftest accepts a value only under its own key.
each 'redis del $key && redis -x set $key <"$work/true/$first"'
forget
verify --cached-only
expect_exit 3
expect "s['cases_cached'] <= 1"
expect_reported_once 'not for the case that was queried'
each 'redis -x set $key <"$work/true/$key"'
forget
verify --cached-only
expect_exit 0
expect_cached "$all"
end_servers

lie() { # MODE SENTENCE
	server_begins "$top/tests/fake_remotes/redis_liar.py" "$1"
	REFTEST_REMOTE=redis://127.0.0.1:$port?timeout=1
	forget
	expect_within 4000 verify tiny_gemm --cached-only
	expect_exit 3
	expect_cached 0
	expect_reported_once "$2"
	end_servers
}
# No memory may be allocated for data that is announced but not sent.
case $build in *asan*) ;; *) ulimit -v 8000000 ;; esac
lie endless-bulk 'more data than was requested'
lie endless-array 'not redis protocol'
lie large-array 'not redis protocol'
lie nested 'not redis protocol'
lie too-many 'an unexpected reply'
lie too-few 'an unexpected reply'
lie numbers 'treated as missing'
lie error 'answered MGET with an error: ERR \x1b[31mred\x1b[0m'
lie nonsense 'not redis protocol'
lie slow 'did not answer within 1 s'
lie silent 'did not answer within 1 s'
lie hangs-up 'closed the connection'
