#!/bin/sh
# If REFTEST_CACHE_KEY is set, a record counts as a miss if it has no signature, has a signature of another key, or was
# changed after it was signed. The public half of an Ed25519 key can check signatures, but cannot sign. With an invalid
# key, no record from a remote or a file is accepted. The key and the address of the remote are not in the environment
# of a reference.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_gemm
redis_begins
hmac=$("$reftest" key hmac)
secret=$("$reftest" key)
public=$(REFTEST_CACHE_KEY=$secret "$reftest" key public)
other=$("$reftest" key)
case $public in ed25519-public:*) ;; *) fail "this is not a public key: $public" ;; esac
export REFTEST_CACHE_KEY

keep() { # keep KEY: signs the records of the remote with this key
	redis flushall >/dev/null
	REFTEST_CACHE_KEY=$1
	verify --force
	expect_exit 0
	expect_cached 0
	all=$(value "s['cases_run']")
	[ ! -s "$work/err" ] || fail "$step: unexpected message"
}
counts() { # KEY
	forget
	REFTEST_CACHE_KEY=$1
	verify --cached-only
	expect_exit 0
	expect_cached "$all"
	[ ! -s "$work/err" ] || fail "$step: unexpected message"
}
does_not() { # KEY SENTENCE
	forget
	REFTEST_CACHE_KEY=$1
	verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_reported_once "$2"
}
keep ''
counts ''
does_not "$hmac" 'not signed'
does_not "$public" 'not signed'
keep "$hmac"
counts "$hmac"
counts '' # without a key, records are accepted without a signature
does_not "$secret" 'different kind of key'
does_not "$("$reftest" key hmac)" 'signature was not made with REFTEST_CACHE_KEY'
keep "$secret"
counts "$secret"
counts "$public"
does_not "$other" 'signature was not made with REFTEST_CACHE_KEY'
does_not "$hmac" 'different kind of key'

# A machine with only the public half of the key reads records and writes none.
redis flushall >/dev/null
REFTEST_CACHE_KEY=$public
verify --force
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "a record was written without a valid signature"

echo "$secret" >"$work/key"
keep "$work/key"
counts "$public"

# The records in exported files are signed and checked like the records of a remote.
carried() { # carried KEY CODE TEXT…: expects this exit status and these messages from an import of $work/export
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
carried '' 0 "$all verdicts imported"
carried "$public" 1 "$all rejected" 'not signed'
expect_exit 3
counts "$public"
REFTEST_CACHE_KEY=$secret
run cache export "$work/export"
expect_exit 0
carried "$public" 0 "$all verdicts imported" ' 0 rejected'
expect_exit 0
carried "$other" 1 "$all rejected" 'not made with REFTEST_CACHE_KEY'
expect_exit 3
carried 'hmac:abad1dea' 2 'REFTEST_CACHE_KEY is not a valid key'
expect_exit 3
expect_cached 0

# With an invalid key, no record from a remote or a file is accepted, and none is written. The message does not contain
# the key.
redis flushall >/dev/null
does_not 'hmac:abad1dea' 'REFTEST_CACHE_KEY is not a valid key'
expect_silence_about abad1dea
does_not "$work/no-such-key" 'that file does not exist'
REFTEST_CACHE_KEY=hmac:abad1dea
verify --force
expect_exit 0
[ "$(redis dbsize)" = 0 ] || fail "a record was written without a signature"

rm -r definitions/gemm
define curious <<'END'
import os

def run(hidden_states, weight):
    raise ValueError(" ".join(name for name in os.environ if name.startswith("REFTEST_")))
END
REFTEST_CACHE_KEY=$secret
verify
expect_exit 1
expect_says 'ValueError' REFTEST_TEST
expect_silence_about REFTEST_CACHE_KEY REFTEST_REMOTE
end_servers
