#!/bin/sh
# An ordinary web server also works as a shared cache. The test uses Apache httpd, whose mod_dav accepts PUT.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_norm tiny_gemm
apache_begins
export REFTEST_REMOTE="$http"
verify
expect_exit 0
all=$(value "s['cases_run']")
[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
[ -n "$(ls "$work/www/ac")" ] && [ -n "$(ls "$work/www/cas")" ] || fail "no file was stored on the server"
for file in "$work/www/cas"/*; do # the name of each file is the digest of its content
	[ "$(sha256sum <"$file" | cut -d ' ' -f 1)" = "$(basename "$file")" ] || fail "the digest of $file is not its name"
done

forget
verify
expect_exit 0
expect_ran 0
expect_cached "$all"
verify --force # runs once more, while the files are already on the server
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"

# A file that was changed on the server's disk is not accepted. If the server's folder is read-only, all results stay
# the same.
forget
for file in "$work/www/ac"/* "$work/www/cas"/*; do printf x >>"$file"; done
verify
expect_exit 0
expect "s['cases_run'] == $all"
rm -rf "$work/www/ac" "$work/www/cas"
verify --force
expect_exit 0
expect_reported_once 'HTTP status'
verify --cached-only
expect_exit 0
