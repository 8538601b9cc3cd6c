#!/bin/sh
# 9225: a redis whose values were changed, and servers that answer what no redis would: nothing of it counts, time and
# memory are bounded, it is said once.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_norm tiny_gemm
redis_begins --proto-max-bulk-len 64mb
verify
expect_exit 0
all=$(value "s['cases_run']")
redis keys 'reftest:*' | sort >"$work/keys"
first=$(head -n 1 "$work/keys")

untrue() { # SENTENCE: of what lies there now, nothing counts
	forget
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_told_once "$1"
}
# each COMMAND: of every $key
each() {
	while read -r key <&3; do
		eval "$1" >/dev/null || fail "redis did not take it: $1"
	done 3<"$work/keys"
}
mkdir "$work/true"
each 'redis --raw get $key | head -c -1 >"$work/true/$key"'
each 'redis setrange $key 900 XX'
untrue 'checksum'
each 'redis set $key garbage'
untrue 'count as missing'
each 'head -c 1000 "$work/true/$key" | redis -x set $key'
untrue 'no whole record'
each '{ cat "$work/true/$key" && head -c 1000 /dev/zero; } | redis -x set $key'
untrue 'no whole record'
each 'head -c 1000000 /dev/zero | redis -x set $key'
untrue 'longer than any verdict'
each 'redis del $key && redis rpush $key a b' # of another type: MGET says nil
forget
verify --cached-only
expect_exit 3
[ ! -s "$work/err" ] || fail "$step: it had something to say"
# What belongs to one key, under every other: where it does belong it counts, nowhere else.
each 'redis del $key && redis -x set $key <"$work/true/$first"'
forget
verify --cached-only
expect_exit 3
expect "s['cases_cached'] <= 1"
expect_told_once 'of another subject'
each 'redis -x set $key <"$work/true/$key"'
forget
verify --cached-only
expect_exit 0
expect_cached "$all"
end_servers

lie() { # MODE SENTENCE
	server_begins "$top/tests/remotes/redis_liar.py" "$1"
	REFTEST_REMOTE=redis://127.0.0.1:$port?timeout=1
	forget
	expect_within 4000 verify tiny_gemm --cached-only
	expect_exit 3
	expect_cached 0
	expect_told_once "$2"
	end_servers
}
case $build in *asan*) ;; *) ulimit -v 8000000 ;; esac # what is promised and not sent must not be made room for
lie endless-bulk 'more than anybody asked for'
lie endless-array 'no redis protocol'
lie large-array 'no redis protocol'
lie nested 'no redis protocol'
lie too-many 'something else than what was asked for'
lie too-few 'something else than what was asked for'
lie numbers 'count as missing'
lie error 'answered MGET with an error: ERR ?[31mred?[0m'
lie nonsense 'no redis protocol'
lie slow 'did not answer within 1 s'
lie silent 'did not answer within 1 s'
lie hangs-up 'ended the connection'
