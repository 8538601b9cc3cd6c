#!/bin/sh
# 9270: the program links neither hiredis nor libcurl nor libsodium, and without REFTEST_REMOTE and REFTEST_CACHE_KEY no
# process of it loads them; with a remote only the courier does, and only if there is something to ask. A build without
# them is whole and says what was left out.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_gemm
verify
expect_exit 0

# loaded: the libraries that the processes of the last run loaded, "process library" a line
loaded() { sed -n 's/^ *\([0-9]*\):[[:space:]]*calling init: //p' "$work"/debug.* | sort -u; }
traced() { # ARGUMENT…: runs with the dynamic loader's log in $work/debug.PID
	rm -f "$work"/debug.*
	LD_DEBUG=files LD_DEBUG_OUTPUT=$work/debug "$reftest" "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
others='hiredis|libcurl|libsodium|libssl|nghttp2|libreftest_remote|libreftest_seal'
traced verify --cached-only --device "$device" --sizes small
expect_exit 0
[ "$(ls "$work"/debug.* | wc -l)" = 1 ] || fail "it began another process"
loaded | grep -q libreftest_kernels || fail "the loader's log says nothing"
loaded | grep -E "$others" && fail "what nobody asked for was loaded"

# Everything is known here: nobody is asked, and nothing more is loaded.
redis_begins
traced verify --cached-only --device "$device" --sizes small
expect_exit 0
[ "$(ls "$work"/debug.* | wc -l)" = 1 ] || fail "a courier was begun for nothing"
loaded | grep -E "$others" && fail "what nobody needed was loaded"

# Something is to be asked: the courier loads them, the program does not.
forget
traced verify --cached-only --device "$device" --sizes small
expect_exit 3
[ "$(grep -lE 'calling init:.*(hiredis|libcurl)' "$work"/debug.* | wc -l)" = 1 ] || fail "not one process loaded them"
with=$(grep -lE 'calling init:.*(hiredis|libcurl)' "$work"/debug.*)
grep -q 'calling init:.*libreftest_kernels' "$with" && fail "it was the program that loaded them"
REFTEST_CACHE_KEY=$("$reftest" key hmac)
export REFTEST_CACHE_KEY
unset REFTEST_REMOTE
traced verify --cached-only --device "$device" --sizes small
expect_exit 3
loaded | grep -E "$others" && fail "a key that nobody needs was looked at"
end_servers

name=$(basename "$build")
make -s -C "$top" all BUILD="$name" SANITIZE="$([ "$name" = build ] || echo address,undefined)" remote_libs= seal_libs= \
	>"$work/out" 2>"$work/err" || fail "make without the libraries: $(tail -n 5 "$work/err")"
expect_says 'is built' 'REFTEST_REMOTE) were left out'
