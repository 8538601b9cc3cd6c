#!/bin/sh
# `reftest hook install` installs a pre-commit hook in the folder that git uses, and keeps an existing hook, which runs
# first. The hook verifies exactly the content that is committed: with `git commit`, `-a`, single files, in another
# worktree, in a submodule, and in a merge. `uninstall` restores the previous state.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" protocol.file.allow always
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
# `commits WORD…`: expects that `git WORD…` creates a commit; `refused WORD…`: expects that it does not.
commits() {
	step="git $*" before=$(git rev-parse HEAD)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
	expect_exit 0
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" != "$before" ] || fail "git $* created no commit"
}
refused() {
	step="git $*" before=$(git rev-parse HEAD)
	git "$@" >"$work/out" 2>"$work/err" </dev/null && fail "git $* was not rejected"
	expectations=$((expectations + 1))
	[ "$(git rev-parse HEAD)" = "$before" ] || fail "git $* created a commit"
}
norm=definitions/rmsnorm/tiny_norm.json
gemm=definitions/gemm/tiny_gemm.json
given tiny_norm tiny_gemm

run hook install
expect_exit 2
expect_says 'is not in a git repository'
do_git init -q -b main .
do_git add definitions workloads blob
do_git commit -qm first
run hook
expect_exit 2

# An existing hook runs first and can reject the commit itself.
cat >.git/hooks/pre-commit <<-'END'
	#!/bin/sh
	echo "the old hook ran with $# words" >&2
	[ ! -e forbidden ]
END
chmod 755 .git/hooks/pre-commit
cp .git/hooks/pre-commit "$work/old"
run hook install
expect_exit 0
expect_says '/.git/hooks/pre-commit installed; the previous hook runs first' '/.git/hooks/pre-merge-commit installed'
run hook install
expect_says '/.git/hooks/pre-commit is already installed'
# After a user has edited the hook that reftest wrote, reftest treats it as the user's own hook.
cp .git/hooks/pre-commit "$work/ours"
sed -i 's/^"$reftest" verify/echo mine\n&/' .git/hooks/pre-commit
cp .git/hooks/pre-commit "$work/edited"
run hook install --strict
expect_exit 2
expect_says '/.git/hooks/pre-commit was edited after reftest installed it, so the file is left unchanged'
run hook uninstall
expect_says '/.git/hooks/pre-commit was edited after reftest installed it, so the file is left unchanged'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/edited" || fail "the edit is lost"
cp "$work/ours" .git/hooks/pre-commit
sed -i 's/ --hook//; /^# reftest-hook: /d' .git/hooks/pre-commit # makes the hook one that an older version wrote
run hook install
expect_says '/.git/hooks/pre-commit installed'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/ours" || fail "the hook differs from the installed one"
echo 1 >note
do_git add note
commits commit -m note
expect_says 'the old hook ran with 0 words' '2 definitions that this commit does not change are not verified;' '`reftest verify --changed --staged` verifies them'
expect_silence_about 'passed ' # nothing ran, because the commit changes no definition
run verify --staged --device "$device"
expect_exit 0
run hook install
expect_silence_about 'not verified'
touch forbidden
refused commit --allow-empty -m forbidden
expect_silence_about 'definitions:'
rm forbidden

# The hook verifies the committed content, not the working tree.
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
commits commit --allow-empty -m 'the edit is not staged'
expect_silence_about 'definition' 'tiny_norm'
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

# Some commits contain no definition: those before the first definition is added, and those after the last one is
# removed.
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
mv definitions aside # the hook verifies the index, whatever the working tree contains
refused commit -m 'not in the working tree'
expect_says 'FAILED   rmsnorm/tiny_norm'
mkdir -p "$work/definitions/rmsnorm" sub # a dataset in a folder above this repository is not used either
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
expect_says 'index has no definitions in this folder'
mv aside definitions
do_git rm -qr --cached definitions
commits commit --allow-empty -m 'none is left'
cd "$root"

# In another worktree git sets environment variables that name the repository.
do_git worktree add -q "$work/tree"
cd "$work/tree"
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
refused commit -a -m 'in a worktree'
expect_says 'FAILED   rmsnorm/tiny_norm'
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6  # the same'
commits commit -a -m 'in a worktree'
cd "$root"
do_git worktree remove --force "$work/tree"

# The definition is correct on both branches of an automatic merge, but the merged definition is invalid.
do_git checkout -q -b one
echo '{"definition": "tiny_norm", "workload": {"uuid": "11111111-0000-4000-8000-000000000009", "axes": {"batch_size": 300}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}}}' >>workloads/rmsnorm/tiny_norm.jsonl
commits commit -a -m one
do_git checkout -q main
edit $norm '"inputs"' '"constraints": ["batch_size <= 256"], "inputs"'
commits commit -a -m 'at most 256 rows'
refused merge --no-edit one
expect_says 'INVALID  rmsnorm/tiny_norm'
do_git merge --abort
do_git reset -q --hard HEAD~1

# One dataset is in a folder of a repository, and another one is in a submodule of this repository. Each dataset uses
# the index of its own repository.
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
# The working tree contains none of the dataset's files (as in a sparse checkout), or only some of them.
edit data/set/$norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git add data
do_git sparse-checkout set --no-cone '/*' '!/data/'
rm -r data/set # all of the dataset except its cache
refused commit -m 'sparse'
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git sparse-checkout set --cone --sparse-index data/set/definitions/gemm
[ -d data/set/definitions/gemm ] && [ ! -e data/set/$norm ] || fail "not a part of data/set/definitions"
refused commit -m 'sparse, and an index that has folders'
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git sparse-checkout disable
do_git reset -q --hard
commits commit --allow-empty -m 'all of it, and right'
# git's environment variables contain paths that are relative to the top folder, but a hook may run reftest in another
# folder.
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
# The submodule has an index of its own. In a hook of the outer repository, git's variables name the index of this
# repository, which must not be used for the submodule.
GIT_DIR="$work/super/.git" GIT_INDEX_FILE="$work/super/.git/index" run verify --root inner --staged --device "$device"
expect_exit 0
expect_says '2 definitions: 2 passed'
cd "$root"

# `hook install` installs nothing in a hooks folder that all repositories share. `hook install` uses a folder that
# belongs to one repository.
do_git config --global core.hooksPath "$work/my hooks"
before=$(ls -A "$work")
run hook install
expect_exit 2
expect_says "$work/my hooks contains the hooks of all your repositories" "git config core.hooksPath '$root/.git/hooks'"
expectations=$((expectations + 1))
[ "$(ls -A "$work")" = "$before" ] || fail "a file was created there"
run hook uninstall # also removes a hook that an older version installed in the shared folder
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
expect_says "$root/.git/hooks/pre-commit is already installed"
do_git config --unset core.hooksPath
do_git config --global --unset core.hooksPath

# The hook is installed while core.hooksPath is set, and core.hooksPath is unset later.
run hook uninstall
expect_exit 0
expect_says 'removed; the previous hook is restored'
expectations=$((expectations + 1))
cmp .git/hooks/pre-commit "$work/old" || fail "the old hook has changed"
[ -z "$(ls .git/hooks | grep -v -e '\.sample$' -e '^pre-commit$')" ] || fail "a file is left in .git/hooks"
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
expect_says 'my/hooks/pre-commit was not written by reftest, so the file is left unchanged'
