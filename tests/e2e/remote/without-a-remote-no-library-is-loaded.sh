#!/bin/sh
# The program is not linked with hiredis, libcurl or libsodium, and without REFTEST_REMOTE and REFTEST_CACHE_KEY none of
# its processes loads them. With a remote, only the helper process loads them, and only if the remote is queried. A
# build without these libraries supports everything except remotes and keys. If it is asked for a remote or a key, a
# message names the missing library.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_gemm
verify
expect_exit 0

# `loaded`: prints the libraries that the processes of the last run loaded, one "process library" per line. The list
# does not contain the names of the program's own libraries, because these are loaded from sealed copies. The test
# recognises the program's own libraries by the other libraries that they need. For example, only the kernels library
# needs libgomp.
loaded() { sed -n 's/^ *\([0-9]*\):[[:space:]]*calling init: //p' "$work"/debug.* | sort -u; }
traced() { # traced ARGUMENT…: runs reftest with the dynamic loader's log in $work/debug.PID
	rm -f "$work"/debug.*
	LD_DEBUG=files LD_DEBUG_OUTPUT=$work/debug "$reftest" "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
others='hiredis|libcurl|libsodium|libssl|nghttp2'
traced verify --cached-only --device "$device" --sizes small
expect_exit 0
[ "$(ls "$work"/debug.* | wc -l)" = 1 ] || fail "the run started another process"
loaded | grep -q libgomp || fail "the loader's log is empty"
loaded | grep -E "$others" && fail "a library was loaded without need"

# Every verdict is stored locally, so the remote is not queried, and no library is loaded.
redis_begins
traced verify --cached-only --device "$device" --sizes small
expect_exit 0
[ "$(ls "$work"/debug.* | wc -l)" = 1 ] || fail "a helper process was started without need"
loaded | grep -E "$others" && fail "a library was loaded without need"

# Now a verdict is missing, so the remote is queried. The helper process loads the libraries, and the main program does
# not. (The helper is forked and has no log, so the log shows only the main program.)
forget
redis config resetstat >/dev/null
traced verify --cached-only --device "$device" --sizes small
expect_exit 3
[ ! -s "$work/err" ] || fail "$step: unexpected message"
redis info commandstats | grep -q '^cmdstat_mget:' || fail "the remote was not queried"
loaded | grep -q libgomp || fail "the loader's log is empty"
loaded | grep -E "$others" && fail "the program itself loaded the libraries"
REFTEST_CACHE_KEY=$("$reftest" key hmac)
export REFTEST_CACHE_KEY
unset REFTEST_REMOTE
traced verify --cached-only --device "$device" --sizes small
expect_exit 3
loaded | grep -E "$others" && fail "a library was loaded for a key that is not used"
end_servers

name=$(basename "$build")
make -s -C "$top" all BUILD="$name" SANITIZE="$([ "$name" = build ] || echo address,undefined)" remote_libs= sign_libs= \
	>"$work/out" 2>"$work/err" || fail "make without the libraries: $(tail -n 5 "$work/err")"
expect_says 'is built' 'REFTEST_REMOTE) were left out'
