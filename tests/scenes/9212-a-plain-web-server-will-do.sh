#!/bin/sh
# 9212: a web server that was written for something else is a shared cache, too: Apache httpd, whose mod_dav takes PUT.
. "$(dirname "$0")/scene.sh"
. "$top/tests/scenes/remotes.sh"
given tiny_norm tiny_gemm
apache_begins
export REFTEST_REMOTE="$http"
verify
expect_exit 0
all=$(value "s['cases_run']")
[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
[ -n "$(ls "$work/www/ac")" ] && [ -n "$(ls "$work/www/cas")" ] || fail "nothing was put there"
for file in "$work/www/cas"/*; do # each under its own digest
	[ "$(sha256sum <"$file" | cut -d ' ' -f 1)" = "$(basename "$file")" ] || fail "$file is not what its name says"
done

forget
verify
expect_exit 0
expect_ran 0
expect_cached "$all"
verify --force # the same once more, where they are already
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"

# What somebody changed on the server's disk does not count, and a folder that takes nothing costs no verdict.
forget
for file in "$work/www/ac"/* "$work/www/cas"/*; do printf x >>"$file"; done
verify
expect_exit 0
expect "s['cases_run'] == $all"
rm -rf "$work/www/ac" "$work/www/cas"
verify --force
expect_exit 0
expect_told_once 'HTTP status'
verify --cached-only
expect_exit 0
