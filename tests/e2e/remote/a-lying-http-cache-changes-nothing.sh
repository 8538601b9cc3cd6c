#!/bin/sh
# Whatever wrong data an HTTP cache sends, reftest rejects the data, waits only a limited time, prints one message, and
# reports the same result as without a remote cache.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm
http_begins
REFTEST_REMOTE=$http/true
export REFTEST_REMOTE
verify
expect_exit 0
all=$(value "s['cases_run']")

lie() { # MODE SENTENCE
	forget
	REFTEST_REMOTE=$http/$1?timeout=1
	expect_within 4000 verify --cached-only
	expect_exit 3
	expect_cached 0
	expect_reported_once "$2"
}
lie truncated 'not an ActionResult'
lie cut 'cannot be queried'
lie garbage 'not an ActionResult'
lie garbled 'checksum'
lie short 'the record is incomplete'
lie longer 'the record is incomplete'
lie misnamed 'SHA-256'
lie huge 'longer than a verdict can be'
lie slow 'did not answer within 1 s'
lie silent 'did not answer within 1 s'
lie redirect-file 'redirects are not followed'
lie redirect 'redirects are not followed'
lie swapped 'not for the case that was queried'
lie broken 'HTTP status 503'

# First the server sends the right data again, so that no case runs. Then it sends wrong data to a run without
# --cached-only, which runs all cases itself.
forget
REFTEST_REMOTE=$http/true
verify --cached-only
expect_exit 0
expect_cached "$all"
forget
REFTEST_REMOTE=$http/garbled
verify
expect_exit 0
expect_ran "$all"
expect_reported_once 'checksum'

# If a verdict of another version of torch is stored under the key for the installed version, the verdict is not
# accepted.
mkdir -p "$work/site/torch"
echo "__version__ = '9.9.9'" >"$work/site/torch/version.py"
: >"$work/site/torch/__init__.py"
cat >"$work/other_torch" <<END
#!/bin/sh
PYTHONPATH=$work/site exec "$python" "\$@"
END
chmod +x "$work/other_torch"
forget
REFTEST_REMOTE=$http/true
verify --cached-only --python "$work/other_torch" --case small:batch_size=1
expect_exit 3
expect_cached 0
[ ! -s "$work/err" ] || fail "$step: unexpected message"
forget
REFTEST_REMOTE=$http/same-subject
verify --cached-only --python "$work/other_torch" --case small:batch_size=1
expect_exit 3
expect_cached 0
expect_reported_once 'different device or ground truth'
end_servers
