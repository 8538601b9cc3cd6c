#!/bin/sh
# 9210: the same through HTTP, as bazel-remote has it: a server that takes only what is below its own SHA-256 and
# ActionResults whose files it holds; one that takes anything; one that leaves contents out. Connections are kept.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_norm tiny_gemm
http_begins
for mode in true plain; do
	REFTEST_REMOTE=$http/$mode
	export REFTEST_REMOTE
	verify --force
	expect_exit 0
	all=$(value "s['cases_run']")
	[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
	grep "^PUT /$mode/" "$work/http.log" | grep -v ' 200$' && fail "the server did not take what it was given"
done
for mode in true plain bare; do
	REFTEST_REMOTE=$http/$mode
	forget
	: >"$work/http.log"
	verify
	expect_exit 0
	expect_ran 0
	expect_cached "$all"
	connections=$(cut -d ' ' -f 3 "$work/http.log" | sort -u | wc -l)
	[ "$connections" -le 8 ] || fail "$connections connections for $(wc -l <"$work/http.log") requests"
done
grep -q '^GET /bare/cas/' "$work/http.log" || fail "what an ActionResult only names was not fetched"

forget
REFTEST_REMOTE=$http/true?read-only
: >"$work/http.log"
verify tiny_gemm --force
expect_exit 0
grep -q '^PUT' "$work/http.log" && fail "read-only wrote"
end_servers

# With user and password; without, it is said.
http_begins 'ann:se:cret'
REFTEST_REMOTE=http://ann:se%3Acret@${http#http://}/true
verify tiny_gemm --force
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: it had something to say"
forget
verify tiny_gemm --cached-only
expect_exit 0
REFTEST_REMOTE=$http/true
forget
verify tiny_gemm --cached-only
expect_exit 3
expect_told_once 'HTTP status 401'

# A server that has no room is told of once; the verdicts are kept here all the same.
end_servers
http_begins
REFTEST_REMOTE=$http/full
verify tiny_gemm --force
expect_exit 0
expect_told_once 'HTTP status 507'
verify tiny_gemm --cached-only
expect_exit 0
end_servers
