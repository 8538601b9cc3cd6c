#!/bin/sh
# 9122: a definition that cannot be verified on this machine refuses no commit that leaves it as it is, and is told as not verified
# by one that changes it; `hook install --strict` refuses that one. What failed or is invalid refuses every commit, and so does a
# tensor that was forgotten. `verify --staged` itself says 3 throughout.
. "$(dirname "$0")/scene.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
commits() {
	step="git $*" before=$(git rev-parse -q --verify HEAD || :)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
	expect_exit 0
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" != "$before" ] || fail "git $* made no commit"
}
refused() {
	step="git $*" before=$(git rev-parse -q --verify HEAD || :)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && fail "git $* went through"
	expectations=$((expectations + 1))
	[ "$(git rev-parse -q --verify HEAD || :)" = "$before" ] || fail "git $* made a commit"
}
norm=definitions/rmsnorm/tiny_norm.json
gemm=definitions/gemm/tiny_gemm.json
odd=definitions/oddity/odd.json
lines=workloads/rmsnorm/tiny_norm.jsonl
blob=blob/workloads/rmsnorm/tiny_norm/rows.safetensors
given tiny_norm tiny_gemm
define odd <<'END'
def run(hidden_states, weight):
    return hidden_states * weight
END
mkdir definitions/oddity # of which nobody has ground truth
sed 's/"op_type": "rmsnorm"/"op_type": "oddity"/' definitions/rmsnorm/odd.json >$odd
rm definitions/rmsnorm/odd.json
do_git init -q -b main .
run hook install
expect_exit 0

# the first commit brings all of it
do_git add definitions workloads blob
commits commit -m first
expect_says 'skipped  oddity/odd' 'no_ground_truth' 'NOT VERIFIED: 1 definition that this commit changes could not be verified here,'
run verify --changed --staged --device "$device"
expect_exit 3

# later ones are not about it
echo 1 >note
do_git add note
commits commit -m note
expect_silence_about 'oddity/odd' 'NOT VERIFIED'
expect_says '1 definition that this commit leaves as it is could not be verified here;' '`reftest verify --changed --staged` says why'
edit $gemm '"description": "' '"description": "Small. '
commits commit -a -m 'another definition'
expect_silence_about 'oddity/odd' 'NOT VERIFIED'
edit $odd 'hidden_states * weight' 'weight * hidden_states'
commits commit -a -m 'the one'
expect_says 'oddity/odd' 'NOT VERIFIED: 1 definition'
edit $odd 'weight * hidden_states' 'hidden_states * weight'
run hook install --strict
expect_says '/.git/hooks/pre-commit installed'
refused commit -a -m 'the one, strictly'
expect_says 'NOT VERIFIED: 1 definition' '--strict refuses that'
do_git add $odd
do_git commit -q --no-verify -m 'the one, all the same'
commits commit --allow-empty -m 'strictly, but not about it'

# what is wrong, or says nothing, is no matter of this machine
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -q --no-verify -a -m 'wrong, and nobody looked'
run hook install
refused commit --allow-empty -m 'a failure that the commit leaves as it is'
expect_says 'FAILED   rmsnorm/tiny_norm' '1 definition that this commit leaves as it is could not be verified'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
commits commit -a -m mended
echo '{' >$gemm
do_git commit -q --no-verify -a -m 'no JSON, and nobody looked'
refused commit --allow-empty -m invalid
expect_says 'INVALID  gemm/tiny_gemm'
do_git checkout -q HEAD~1 $gemm
commits commit -m mended

# a tensor that is elsewhere: the commit that says so goes through, and those after it
cp $blob "$work/rows"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$(printf x | sha256sum | cut -d ' ' -f 1)" 1 >$blob
commits commit -a -m 'a tensor that only LFS has'
expect_says 'rmsnorm/tiny_norm' 'git lfs fetch --include' 'NOT VERIFIED: 1 definition'
commits commit --allow-empty -m 'and after it'
expect_says '2 definitions that this commit leaves as they are could not be'
cp "$work/rows" $blob
commits commit -a -m 'it is here again'
# one that was forgotten, or is taken away, is the commit's own fault
cp $blob blob/workloads/rmsnorm/tiny_norm/more.safetensors
sed -i 's#/rows.safetensors#/more.safetensors#' $lines
refused commit -a -m forgotten
expect_says 'would be missing from the commit' 'would be without tensors that could be in it'
do_git add blob $lines
commits commit -m 'not forgotten'
do_git rm -q --cached blob/workloads/rmsnorm/tiny_norm/more.safetensors
mv blob/workloads/rmsnorm/tiny_norm/more.safetensors "$work/"
refused commit -m 'taken away'
do_git commit -q --no-verify -m 'all the same'
commits commit --allow-empty -m 'that was before'
# who never had it can still work on the rest of the definition
edit $norm '"description": "' '"description": "Tiny. '
commits commit -a -m 'about it, without it'
expect_says 'NOT VERIFIED: 1 definition'

# a partial clone has no text of what nobody has looked at in it, and here its remote is gone
do_git config uploadpack.allowFilter true
do_git clone -q --no-checkout --filter=blob:none "file://$root" "$work/partial"
cd "$work/partial"
do_git sparse-checkout set --no-cone definitions/gemm
do_git checkout -q main
do_git remote set-url origin "file://$work/gone"
run hook install
expect_exit 0
echo 1 >other
do_git add -f --sparse other
commits commit -m partial
expect_says '3 definitions that this commit leaves as they are could not be'
expect_silence_about 'fatal:'
run verify --changed --staged --device "$device"
expect_exit 3
expect_says 'by this partial clone; `git cat-file -e' '3 definitions: 3 skipped'
cd "$root"

# without definitions there is nothing to verify
do_git rm -q -r --cached definitions
commits commit -m none
run verify --changed --staged --device "$device"
expect_exit 3
run verify --changed --staged --hook --device "$device"
expect_exit 0
expect_says 'the commit holds no definition'
run verify --hook
expect_exit 2
expect_says '--hook is about what a commit would hold'
