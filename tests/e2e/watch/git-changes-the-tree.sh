#!/bin/sh
# git checkout, git stash, and pre-commit's stash and restore cause one batch each. Each verdict is for the final
# content of its file. If the file had the same content before and was verified, no case runs again.
. "$(dirname "$0")/../harness.sh"
command -v git >/dev/null 2>&1 || skip "there is no git here"
given tiny_norm tiny_gemm
for i in 1 2 3 4 5 6 7 8; do
	sed "s/tiny_gemm/gemm_$i/" definitions/gemm/tiny_gemm.json >definitions/gemm/gemm_$i.json
done
do_git() { git -c user.name=test -c user.email=test@localhost "$@" >/dev/null 2>&1 || fail "git $*"; }
do_git init -b good
do_git add definitions workloads
do_git commit -m good
do_git checkout -b bad
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' definitions/rmsnorm/tiny_norm.json
sed -i 's/@torch/# a remark\\n@torch/; s/def run/# a remark\\ndef run/' definitions/gemm/*.json
do_git commit -a -m bad
watch

do_git checkout good
await_batch
expect_events "e['passed'] == 10 and e['failed'] == 0 and e['batch'] == 2"
do_git checkout bad
await_batch
expect_events "e['passed'] == 9 and e['failed'] == 1 and e['cases_run'] == 0 and e['batch'] == 3"
do_git checkout good
await_batch
expect_events "e['passed'] == 10 and e['cases_run'] == 0 and e['batch'] == 4"

sed -i 's/EPSILON = 1e-6/EPSILON = 1e-3/' definitions/rmsnorm/tiny_norm.json
await_batch
expect_events "e['failed'] == 1 and e['batch'] == 5"
do_git stash
await_batch
expect_events "e['passed'] == 1 and e['cases_run'] == 0 and e['batch'] == 6"
do_git stash pop
await_batch
expect_events "e['failed'] == 1 and e['cases_run'] == 0 and e['batch'] == 7"

# Like pre-commit, save the unstaged changes as a patch, revert them, and apply them again.
git diff --binary >"$work/patch"
do_git checkout -- .
await_batch
expect_events "e['passed'] == 1 and e['cases_run'] == 0"
# `git apply` deletes the file and creates it again without git's lock. If a busy machine delays git for a tenth of a
# second between the deletion and the creation, the watcher reports the deletion first.
do_git apply "$work/patch"
await "e['event'] == 'batch' and e['failed'] == 1"
expect_events "e['cases_run'] == 0 and all(b['gone'] == 1 and b['seconds'] >= 0.09 for b in a[:-1] if b['event'] == 'batch')"
end_watch
verify
expect_exit 1
expect_ran 0
