#!/bin/sh
# 7030: git checkout, git stash, and the stash and restore that pre-commit makes: each is one batch, each verdict is of what
# git left, and what was verified before costs no run.
. "$(dirname "$0")/scene.sh"
command -v git >/dev/null 2>&1 || skip "there is no git here"
given tiny_norm tiny_gemm
for i in 1 2 3 4 5 6 7 8; do
	sed "s/tiny_gemm/gemm_$i/" definitions/gemm/tiny_gemm.json >definitions/gemm/gemm_$i.json
done
do_git() { git -c user.name=scene -c user.email=scene@localhost "$@" >/dev/null 2>&1 || fail "git $*"; }
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
heard "e['passed'] == 10 and e['failed'] == 0 and e['batch'] == 2"
do_git checkout bad
await_batch
heard "e['passed'] == 9 and e['failed'] == 1 and e['cases_run'] == 0 and e['batch'] == 3"
do_git checkout good
await_batch
heard "e['passed'] == 10 and e['cases_run'] == 0 and e['batch'] == 4"

sed -i 's/EPSILON = 1e-6/EPSILON = 1e-3/' definitions/rmsnorm/tiny_norm.json
await_batch
heard "e['failed'] == 1 and e['batch'] == 5"
do_git stash
await_batch
heard "e['passed'] == 1 and e['cases_run'] == 0 and e['batch'] == 6"
do_git stash pop
await_batch
heard "e['failed'] == 1 and e['cases_run'] == 0 and e['batch'] == 7"

# as pre-commit does: what is not staged is kept as a patch, undone, and applied again
git diff --binary >"$work/patch"
do_git checkout -- .
await_batch
heard "e['passed'] == 1 and e['cases_run'] == 0"
# `git apply` deletes the file and makes it anew, without git's lock: on a machine so busy that it is held up for a tenth of a second
# in between, that it is gone is told before, after that wait.
do_git apply "$work/patch"
await "e['event'] == 'batch' and e['failed'] == 1"
heard "e['cases_run'] == 0 and all(b['gone'] == 1 and b['seconds'] >= 0.09 for b in a[:-1] if b['event'] == 'batch')"
end_watch
verify
expect_exit 1
expect_ran 0
