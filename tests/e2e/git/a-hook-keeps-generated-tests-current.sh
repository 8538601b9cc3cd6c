#!/bin/sh
# If a commit would make generated tests out of date, the hook updates them, and rejects the commit until they are
# added. If the working tree has other changes of definitions or tests, the hook does not update the tests, and says so.
# In a dataset without generated tests, the hook generates none.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
# `commit STATUS WORD…`: expects that `git commit WORD…` exits with STATUS
commit() {
	wanted=$1
	shift
	step="git commit $*"
	git commit "$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
	expect_exit "$wanted"
}
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm
do_git init -q -b main .
run hook install
do_git add definitions workloads blob
commit 0 -m first
[ ! -e tests ] || fail "a dataset without generated tests got some"
run generate
expect_exit 0
do_git add tests
commit 0 -m tests

edit $norm 'rows.square()' 'rows.pow(2)'
commit 1 -a -m 'another formula'
expect_says 'tests/references/test_rmsnorm.py written' 'git add tests/references/test_rmsnorm.py'
do_git add tests
commit 0 -a -m 'another formula and its test'
run generate --check
expect_exit 0

# Only one of two edits is committed.
edit $norm 'rows.pow(2)' 'rows.square()'
edit definitions/gemm/tiny_gemm.json '"description": "' '"description": "Small. '
commit 0 -m one $norm
expect_says 'the generated tests were not checked, because definitions/ or tests/references/ has changes outside this commit'
git diff --quiet -- tests || fail "the hook wrote tests although the working tree has other changes"
