#!/bin/sh
# 9120: `reftest hook install` puts a hook where git looks for it, in front of the one that is there, and what is committed is
# what is verified: with `git commit`, `-a`, of single files, in another worktree, in a submodule, by a merge. `uninstall`
# leaves everything as it was.
. "$(dirname "$0")/scene.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
git config --file "$GIT_CONFIG_GLOBAL" protocol.file.allow always
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
# commits WORD…: a commit is made; refused WORD…: none is
commits() {
	step="git $*" before=$(git rev-parse HEAD)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
	expect_exit 0
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" != "$before" ] || fail "git $* made no commit"
}
refused() {
	step="git $*" before=$(git rev-parse HEAD)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && fail "git $* went through"
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" = "$before" ] || fail "git $* made a commit"
}
norm=definitions/rmsnorm/tiny_norm.json
gemm=definitions/gemm/tiny_gemm.json
given tiny_norm tiny_gemm

run hook install
expect_exit 2
expect_says 'lies in no git repository'
do_git init -q -b main .
do_git add definitions workloads blob
do_git commit -qm first
run hook
expect_exit 2

# the hook that is there goes first, and says no for itself
cat >.git/hooks/pre-commit <<-'END'
	#!/bin/sh
	echo "the old hook ran with $# words" >&2
	[ ! -e forbidden ]
END
chmod 755 .git/hooks/pre-commit
cp .git/hooks/pre-commit "$work/old"
run hook install
expect_exit 0
expect_says '/.git/hooks/pre-commit installed; the hook that was there is run first' '/.git/hooks/pre-merge-commit installed'
run hook install
expect_says '/.git/hooks/pre-commit is installed already'
# one that was edited is somebody's work
cp .git/hooks/pre-commit "$work/ours"
sed -i 's/^exec /echo mine\nexec /' .git/hooks/pre-commit
cp .git/hooks/pre-commit "$work/edited"
run hook install --strict
expect_exit 2
expect_says '/.git/hooks/pre-commit was edited since reftest installed it, so it is left as it is'
run hook uninstall
expect_says '/.git/hooks/pre-commit was edited since reftest installed it, so it is left as it is'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/edited" || fail "the edit is gone"
cp "$work/ours" .git/hooks/pre-commit
sed -i 's/ --hook//; /^# reftest-hook: /d' .git/hooks/pre-commit # as older versions wrote it
run hook install
expect_says '/.git/hooks/pre-commit installed'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/ours" || fail "it is not what it was"
echo 1 >note
do_git add note
commits commit -m note
expect_says 'the old hook ran with 0 words' '2 definitions: 2 passed'
touch forbidden
refused commit --allow-empty -m forbidden
expect_silence_about 'definitions:'
rm forbidden

# what is committed, not what lies about
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
commits commit --allow-empty -m 'the edit is not staged'
expect_says '2 definitions: 2 passed; 0 cases run'
refused commit -a -m 'all of it'
expect_says 'FAILED   rmsnorm/tiny_norm' 'max abs' 'cosine' 'margin' 'at [' 'reftest verify rmsnorm/tiny_norm --case'
expectations=$((expectations + 1))
awk 'length($0) > 80 { exit 1 }' "$work/out" "$work/err" || fail "a line is wider than 80 columns"
refused commit -m 'one file' $norm
edit $gemm '"description": "' '"description": "Small. '
commits commit -m 'the other file' $gemm
do_git add $norm
refused commit -m staged
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
refused commit -m 'mended, but not staged'
commits commit -a --allow-empty -m mended
refused commit --amend --no-edit -a --date nonsense

# a commit of nothing that is ours: before the first definition is added, or without the last
do_git init -q -b main "$work/young"
cd "$work/young"
cp -r "$root/definitions" .
run hook install
expect_exit 0
echo 1 >note
do_git add note
do_git commit -qm first
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git add $norm
refused commit -m 'the first definition, and it is wrong'
expect_says 'FAILED   rmsnorm/tiny_norm'
mv definitions aside # what the index holds is verified, whatever lies about
refused commit -m 'not in the working tree'
expect_says 'FAILED   rmsnorm/tiny_norm'
mkdir -p "$work/definitions/rmsnorm" sub # nor is a dataset above this repository taken for it
cd sub
run verify --changed --staged --device "$device"
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
cd ..
rm -r "$work/definitions" sub
run verify --root . --device "$device"
expect_exit 2
run verify --root .git --staged --device "$device"
expect_exit 2
expect_says 'index has no definitions there'
mv aside definitions
do_git rm -qr --cached definitions
commits commit --allow-empty -m 'none is left'
cd "$root"

# in another worktree, where git says by variables which repository it is
do_git worktree add -q "$work/tree"
cd "$work/tree"
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m 'in a worktree'
expect_says 'FAILED   rmsnorm/tiny_norm'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6  # the same'
commits commit -a -m 'in a worktree'
cd "$root"
do_git worktree remove --force "$work/tree"

# a merge that needs nobody: each side is right, both together are not
do_git checkout -q -b one
edit workloads/gemm/tiny_gemm.jsonl '{"M": 5}' '{"M": 6}'
commits commit -a -m one
do_git checkout -q main
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -q --no-verify -a -m 'wrong, and nobody looked'
refused merge --no-edit one
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git merge --abort
do_git reset -q --hard HEAD~1

# a dataset in a folder of a repository, and in a submodule of it: each by its own index
mkdir "$work/super"
git -C "$work/super" init -q -b main .
mkdir -p "$work/super/data/set"
cp -r definitions workloads blob "$work/super/data/set/"
cd "$work/super"
do_git add data
do_git commit -qm first
run hook install --root data/set
expect_exit 0
edit data/set/$norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m 'in a folder'
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git checkout -q .
# of which the working tree holds nothing (a sparse checkout), or a part
edit data/set/$norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git add data
do_git sparse-checkout set --no-cone '/*' '!/data/'
rm -r data/set # but for the cache
refused commit -m 'sparse'
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git sparse-checkout set --cone --sparse-index data/set/definitions/gemm
[ -d data/set/definitions/gemm ] && [ ! -e data/set/$norm ] || fail "not a part of data/set/definitions"
refused commit -m 'sparse, and an index that has folders'
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git sparse-checkout disable
do_git reset -q --hard
commits commit --allow-empty -m 'all of it, and right'
# a hook that went into a folder, with the paths that git gave it at the top
cp .git/index .git/other
edit data/set/$norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
GIT_INDEX_FILE=.git/other git add data
do_git checkout -q .
cd data
GIT_INDEX_FILE=.git/other run verify --root set --changed --staged --device "$device"
expect_exit 1
GIT_DIR=.git GIT_INDEX_FILE=.git/other run verify --root set --changed --staged --device "$device"
expect_exit 1
run verify --root set --changed --staged --device "$device"
expect_exit 0
cd ..
do_git submodule add -q "$root" inner
do_git commit -q --no-verify -m submodule
cd inner
run hook install
expect_says "/.git/modules/inner/hooks/pre-commit installed"
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m 'in a submodule'
cd ..
# the variables of a hook of this repository are not for the dataset in the submodule, whose own index is right
GIT_DIR="$work/super/.git" GIT_INDEX_FILE="$work/super/.git/index" run verify --root inner --staged --device "$device"
expect_exit 0
expect_says '2 definitions: 2 passed'
cd "$root"

# a folder of hooks for all of one's repositories is not ours to write to; one that is each repository's own is
do_git config --global core.hooksPath "$work/my hooks"
before=$(ls -A "$work")
run hook install
expect_exit 2
expect_says "$work/my hooks is where git looks for hooks in all of your repositories" "git config core.hooksPath '$root/.git/hooks'"
expectations=$((expectations + 1))
[ "$(ls -A "$work")" = "$before" ] || fail "something was made there"
run hook uninstall # of what an older version put there
expect_exit 0
do_git config --global core.hooksPath own-hooks
run hook install
expect_exit 0
expect_says "$root/own-hooks/pre-commit installed"
run hook uninstall
rmdir own-hooks
do_git config --global core.hooksPath "$work/my hooks"
do_git config core.hooksPath "$root/.git/hooks"
run hook install
expect_says "$root/.git/hooks/pre-commit is installed already"
do_git config --unset core.hooksPath
do_git config --global --unset core.hooksPath

# core.hooksPath, and back
run hook uninstall
expect_exit 0
expect_says 'removed; the hook that was there before is back'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/old" || fail "the old hook is not what it was"
[ -z "$(ls .git/hooks | grep -v -e '\.sample$' -e '^pre-commit$')" ] || fail "something is left in .git/hooks"
run hook uninstall
expect_exit 0
do_git config core.hooksPath my/hooks
run hook install
expect_says '/my/hooks/pre-commit installed'
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m 'by core.hooksPath'
expect_says 'FAILED   rmsnorm/tiny_norm'
echo '#!/bin/sh' >my/hooks/pre-commit
run hook uninstall
expect_exit 0
expect_says 'my/hooks/pre-commit is not reftest'"'"'s, so it is left as it is'
