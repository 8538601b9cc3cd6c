#!/bin/sh
# The hook verifies the definitions that a commit changes, and reports only how many of the other definitions are not
# verified. If a commit changes a definition that this machine cannot verify, the hook prints a warning. With --strict,
# it rejects the commit. A commit is rejected if a definition that it changes fails or is invalid, or if the commit
# lacks a tensor file that the workloads name. After `hook install --all`, every commit is rejected while a definition
# fails. If a definition cannot be verified but does not fail, the hook accepts the commit, whereas `verify --staged`
# exits with 3.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
commits() {
	step="git $*" before=$(git rev-parse -q --verify HEAD || :)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
	expect_exit 0
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" != "$before" ] || fail "git $* created no commit"
}
refused() {
	step="git $*" before=$(git rev-parse -q --verify HEAD || :)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && fail "git $* was not rejected"
	expectations=$((expectations + 1))
	[ "$(git rev-parse -q --verify HEAD || :)" = "$before" ] || fail "git $* created a commit"
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
mkdir definitions/oddity # this definition has no ground truth, because no family supports float64
sed 's/"op_type": "rmsnorm"/"op_type": "oddity"/; s/"bfloat16"/"float64"/' definitions/rmsnorm/odd.json >$odd
rm definitions/rmsnorm/odd.json
do_git init -q -b main .
run hook install
expect_exit 0

# The first commit contains all definitions.
do_git add definitions workloads blob
commits commit -m first
expect_says 'checked  oddity/odd' 'no ground truth decides' 'NOT VERIFIED: 1 definition that this commit changes could not be verified here,'
run verify --changed --staged --device "$device"
expect_exit 3

# The definition `odd` cannot be verified. The next commits do not change it, so the hook only counts it.
echo 1 >note
do_git add note
commits commit -m note
expect_silence_about 'oddity/odd' 'NOT VERIFIED' 'definitions:'
expect_says '1 definition that this commit does not change is not verified;' '`reftest verify --changed --staged` verifies it'
edit $gemm '"description": "' '"description": "Small. '
commits commit -a -m 'another definition'
expect_silence_about 'oddity/odd' 'NOT VERIFIED'
edit $odd 'hidden_states * weight' 'weight * hidden_states'
commits commit -a -m 'the one'
expect_says 'oddity/odd' 'NOT VERIFIED: 1 definition'
expect_silence_about 'that this commit does not change' # it is counted once
edit $odd 'weight * hidden_states' 'hidden_states * weight'
run hook install --strict
expect_says '/.git/hooks/pre-commit installed'
refused commit -a -m 'the one, strictly'
expect_says 'NOT VERIFIED: 1 definition' 'because of --strict, the commit is rejected'
do_git add $odd
do_git commit -q --no-verify -m 'the one, all the same'
commits commit --allow-empty -m 'strictly, but not about it'

# If a definition fails or is invalid, the hook rejects each commit that changes it. With --all, it rejects every
# commit.
run hook install
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m wrong
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git commit -q --no-verify -a -m 'wrong, and nobody looked'
commits commit --allow-empty -m 'a failure that the commit does not change'
expect_says '2 definitions that this commit does not change are not verified (1 failed);' '`reftest verify --changed --staged` verifies them'
expect_silence_about 'FAILED'
run hook install
expect_says '2 of 3 definitions are not verified; `reftest verify` verifies them. The hook verifies only the definitions that a commit changes'
run hook install --all
expect_silence_about 'not verified;'
refused commit --allow-empty -m 'a failure that the commit does not change'
expect_says 'FAILED   rmsnorm/tiny_norm' '1 definition that this commit does not change could not be verified' '`reftest verify --changed --staged` prints the reasons'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
commits commit -a -m mended
echo '{' >$gemm
do_git commit -q --no-verify -a -m 'no JSON, and nobody looked'
refused commit --allow-empty -m invalid
expect_says 'INVALID  gemm/tiny_gemm'
run hook install
do_git checkout -q HEAD~1 $gemm
commits commit -m mended

# The commit that adds an LFS pointer for a tensor file, without the file's content, is accepted, and so are later
# commits.
cp $blob "$work/rows"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$(printf x | sha256sum | cut -d ' ' -f 1)" 1 >$blob
commits commit -a -m 'a tensor that only LFS has'
expect_says 'rmsnorm/tiny_norm' 'fetch --include' 'NOT VERIFIED: 1 definition'
commits commit --allow-empty -m 'and after it'
expect_says '2 definitions that this commit does not change are not'
cp "$work/rows" $blob
commits commit -a -m 'it is here again'
# If a tensor file is removed, or exists but is not added to git, the hook rejects the commit.
cp $blob blob/workloads/rmsnorm/tiny_norm/more.safetensors
sed -i 's#/rows.safetensors#/more.safetensors#' $lines
refused commit -a -m forgotten
expect_says 'would be missing from the commit' 'tensor files are missing from the commit'
do_git add blob $lines
commits commit -m 'not forgotten'
do_git rm -q --cached blob/workloads/rmsnorm/tiny_norm/more.safetensors
mv blob/workloads/rmsnorm/tiny_norm/more.safetensors "$work/"
refused commit -m 'taken away'
do_git commit -q --no-verify -m 'all the same'
commits commit --allow-empty -m 'that was before'
# While the tensor file is missing, other parts of the definition can still be edited and committed.
edit $norm '"description": "' '"description": "Tiny. '
commits commit -a -m 'about it, without it'
expect_says 'NOT VERIFIED: 1 definition'

# A partial clone lacks the contents of files that were never read. Here the clone cannot fetch them, because its remote
# no longer exists.
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
expect_says '3 definitions that this commit does not change are not'
expect_silence_about 'fatal:'
run verify --changed --staged --device "$device"
expect_exit 3
expect_says 'this partial clone does not have' '3 definitions: 3 skipped'
cd "$root"

# Without definitions there is nothing to verify.
do_git rm -q -r --cached definitions
commits commit -m none
run verify --changed --staged --device "$device"
expect_exit 3
run verify --changed --staged --hook --device "$device"
expect_exit 0
expect_says 'the commit contains no definitions'
run verify --hook
expect_exit 2
expect_says '--hook needs --staged and --format text'
