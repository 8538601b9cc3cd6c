#!/bin/sh
# 9220: whatever an HTTP cache answers instead of the truth, its word does not count, the time is bounded, it is said once,
# and the run comes to what it would have come to without.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
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
	expect_told_once "$2"
}
lie truncated 'no ActionResult'
lie cut 'cannot be asked'
lie garbage 'no ActionResult'
lie garbled 'checksum'
lie short 'no whole record'
lie longer 'no whole record'
lie misnamed 'SHA-256'
lie huge 'longer than any verdict'
lie slow 'did not answer within 1 s'
lie silent 'did not answer within 1 s'
lie redirect-file 'redirects are not followed'
lie redirect 'redirects are not followed'
lie swapped 'of another subject'
lie broken 'HTTP status 503'

# The truth is still there, and a run without --cached-only does what is missing itself.
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
expect_told_once 'checksum'

# The verdict of another torch, put where this one's would lie, does not count as this one's.
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
[ ! -s "$work/err" ] || fail "$step: it had something to say"
forget
REFTEST_REMOTE=$http/same-subject
verify --cached-only --python "$work/other_torch" --case small:batch_size=1
expect_exit 3
expect_cached 0
expect_told_once 'another device or ground truth'
end_servers
