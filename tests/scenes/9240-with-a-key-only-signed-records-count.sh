#!/bin/sh
# 9240: with REFTEST_CACHE_KEY set, a record that is not signed, signed with another key or changed since is a miss; the
# public half of an Ed25519 key checks and does not sign; a key that is none lets nothing from elsewhere count. What a
# reference finds in its environment, and may print, is neither the key nor the remote.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_gemm
redis_begins
hmac=$("$reftest" key hmac)
secret=$("$reftest" key)
public=$(REFTEST_CACHE_KEY=$secret "$reftest" key public)
other=$("$reftest" key)
case $public in ed25519-public:*) ;; *) fail "that is no public key: $public" ;; esac
export REFTEST_CACHE_KEY

keep() { # KEY: what the remote holds is signed with it from now on
	redis flushall >/dev/null
	REFTEST_CACHE_KEY=$1
	verify --force
	expect_exit 0
	expect_cached 0
	all=$(value "s['cases_run']")
	[ ! -s "$work/err" ] || fail "$step: it had something to say"
}
counts() { # KEY
	forget
	REFTEST_CACHE_KEY=$1
	verify --cached-only
	expect_exit 0
	expect_cached "$all"
	[ ! -s "$work/err" ] || fail "$step: it had something to say"
}
does_not() { # KEY SENTENCE
	forget
	REFTEST_CACHE_KEY=$1
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_told_once "$2"
}
keep ''
counts ''
does_not "$hmac" 'not signed'
does_not "$public" 'not signed'
keep "$hmac"
counts "$hmac"
counts '' # who asks for no signature believes what is there
does_not "$secret" 'another kind of key'
does_not "$("$reftest" key hmac)" 'signature is not one of REFTEST_CACHE_KEY'
keep "$secret"
counts "$secret"
counts "$public"
does_not "$other" 'signature is not one of REFTEST_CACHE_KEY'
does_not "$hmac" 'another kind of key'

# Who has only the public half reads and writes nothing.
redis flushall >/dev/null
REFTEST_CACHE_KEY=$public
verify --force
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "something was written that nobody can check"

# A key in a file.
echo "$secret" >"$work/key"
keep "$work/key"
counts "$public"

# Exported files are signed and held to it as well.
carried() { # KEY CODE TEXT…: what an import of $work/export says
	forget
	REFTEST_CACHE_KEY=$1
	code=$2
	shift 2
	run cache import "$work/export"
	expect_exit "$code"
	expect_says "$@"
	unset REFTEST_REMOTE
	verify --cached-only
	export REFTEST_REMOTE="redis+unix://$work/redis.sock"
}
counts "$public"
run cache export "$work/export"
expect_exit 0
carried '' 0 "$all verdicts taken"
carried "$public" 1 "$all refused" 'not signed'
expect_exit 3
counts "$public"
REFTEST_CACHE_KEY=$secret
run cache export "$work/export"
expect_exit 0
carried "$public" 0 "$all verdicts taken" ' 0 refused'
expect_exit 0
carried "$other" 1 "$all refused" 'not one of REFTEST_CACHE_KEY'
expect_exit 3
carried 'hmac:abad1dea' 2 'REFTEST_CACHE_KEY is no key'
expect_exit 3
expect_cached 0

# A key that is none: nothing from elsewhere counts, nothing is written; it is said, without the key.
redis flushall >/dev/null
does_not 'hmac:abad1dea' 'REFTEST_CACHE_KEY is no key'
expect_silence_about abad1dea
does_not "$work/no-such-key" 'not there'
REFTEST_CACHE_KEY=hmac:abad1dea
verify --force
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "something was written without a signature"

rm -r definitions/gemm
define curious <<'END'
import os

def run(hidden_states, weight):
    raise ValueError(" ".join(name for name in os.environ if name.startswith("REFTEST_")))
END
REFTEST_CACHE_KEY=$secret
verify
expect_exit 1
expect_says 'ValueError' REFTEST_SCENE
expect_silence_about REFTEST_CACHE_KEY REFTEST_REMOTE
end_servers
