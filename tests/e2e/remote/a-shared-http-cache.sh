#!/bin/sh
# Verdicts are shared through HTTP servers of three kinds. The first kind, such as bazel-remote, accepts data only under
# their own SHA-256. It accepts an ActionResult only if the server has the files that the ActionResult names. A server
# of the second kind accepts any data. A server of the third kind omits the contents of files from ActionResults.
# Connections are reused.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
http_begins
for mode in true plain; do
	REFTEST_REMOTE=$http/$mode
	export REFTEST_REMOTE
	verify --force
	expect_exit 0
	all=$(value "s['cases_run']")
	[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
	grep "^PUT /$mode/" "$work/http.log" | grep -v ' 200$' && fail "the server rejected a PUT"
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
	[ "$connections" -le 8 ] || fail "it used $connections connections for $(wc -l <"$work/http.log") requests"
done
grep -q '^GET /bare/cas/' "$work/http.log" || fail "a file that an ActionResult refers to was not fetched"

forget
REFTEST_REMOTE=$http/true?read-only
: >"$work/http.log"
verify tiny_gemm --force
expect_exit 0
grep -q '^PUT' "$work/http.log" && fail "a read-only remote was written to"
end_servers

# The server requires a user name and a password. Without user name and password, an error is reported.
http_begins 'ann:se:cret'
REFTEST_REMOTE=http://ann:se%3Acret@${http#http://}/true
verify tiny_gemm --force
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: unexpected message"
forget
verify tiny_gemm --cached-only
expect_exit 0
REFTEST_REMOTE=$http/true
forget
verify tiny_gemm --cached-only
expect_exit 3
expect_reported_once 'HTTP status 401'

# If the server is full, one message says so, and the verdicts are still stored locally.
end_servers
http_begins
REFTEST_REMOTE=$http/full
verify tiny_gemm --force
expect_exit 0
expect_reported_once 'HTTP status 507'
verify tiny_gemm --cached-only
expect_exit 0
end_servers
