#!/bin/sh
# 9130: the real pre-commit runs our hooks from .pre-commit-hooks.yaml: a wrong definition stops the commit with its name, the
# metric and the place, in 80 columns; what is not staged is not looked at; file names in parallel chunks do no harm; and a
# hook that had to write says what to `git add`.
. "$(dirname "$0")/scene.sh"
pre_commit=$top/.venv-tests/bin/pre-commit
[ -x "$pre_commit" ] || fail "there is no pre-commit: tools/setup.sh --tests installs it"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
export PRE_COMMIT_HOME="$work/pre-commit" PRE_COMMIT_COLOR=never COLUMNS=80
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
do_run() { # do_run WORD…: what it says and its exit code, where the expectations look
	step=$*
	"$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
}
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm

# our repository, as far as pre-commit needs it; the program is on PATH as an installed one is
mkdir -p "$work/ours" "$work/bin"
cp "$top/.pre-commit-hooks.yaml" "$work/ours/"
git -C "$work/ours" init -q
git -C "$work/ours" add .pre-commit-hooks.yaml
git -C "$work/ours" commit -qm hooks
ln -s "$reftest" "$work/bin/reftest"
PATH=$work/bin:$PATH
config() { # config HOOK [LINE…]: uses this hook, with more lines under it
	printf 'repos:\n- repo: %s\n  rev: %s\n  hooks:\n  - id: %s\n' "$work/ours" "$(git -C "$work/ours" rev-parse HEAD)" \
		"$1" >.pre-commit-config.yaml
	shift
	for line in "$@"; do printf '    %s\n' "$line" >>.pre-commit-config.yaml; done
	do_git add .pre-commit-config.yaml
}
do_run "$pre_commit" validate-manifest "$top/.pre-commit-hooks.yaml"
expect_exit 0
do_git init -q -b main .
config reftest-verify
do_git add definitions workloads blob
do_run "$pre_commit" install
expect_exit 0
do_run git commit -m first
expect_exit 0
expect_says 'reftest verify' 'Passed' '2 definitions: 2 passed'

# a wrong epsilon; the message fits
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_run git commit -a -m wrong
expect_exit 1
expect_says 'Failed' 'FAILED   rmsnorm/tiny_norm' 'max abs' 'cosine' 'margin' 'at [' 'ground truth'
expectations=$((expectations + 1))
cat "$work/out" "$work/err" | awk 'length($0) > 80 { print; exit 1 }' >"$work/wide" || fail "wider than 80: $(cat "$work/wide")"
# not staged: pre-commit puts it aside, and the index is what counts
do_git checkout -q .
echo text >note
do_git add note
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_run git commit -m note
expect_exit 0
expectations=$((expectations + 1))
grep -q 1e-3 $norm || fail "the edit is gone"
# staged in part: the staged half is wrong
do_git add $norm
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
do_run git commit -m half
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git add $norm
# a deletion alone is looked at too
do_git rm -q definitions/gemm/tiny_gemm.json workloads/gemm/tiny_gemm.jsonl
do_run git commit -m deleted
expect_exit 0
expect_says 'Passed'

# what cannot be verified here is told, also of a hook that passes; `args: [--strict]` refuses it
mkdir definitions/oddity
sed 's/"tiny_norm"/"odd"/; s/"op_type": "rmsnorm"/"op_type": "oddity"/' $norm >definitions/oddity/odd.json
do_git add definitions
config reftest-verify 'args: [--strict]'
do_run git commit -m 'odd, strictly'
expect_exit 1
expect_says 'NOT VERIFIED: 1 definition'
config reftest-verify
do_run git commit -m odd
expect_exit 0
expect_says 'Passed' 'NOT VERIFIED: 1 definition'
do_git rm -q -r definitions/oddity
do_git commit -q -m 'not odd'

# somebody gives it file names after all, in chunks that run side by side
config reftest-verify 'pass_filenames: true' 'require_serial: false'
for i in $(seq 1 30); do
	sed "s/tiny_norm/norm_$i/; s/A small/Number $i, a small/" $norm >definitions/rmsnorm/norm_$i.json
	echo $i >"file number $i.txt"
done
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-3/' definitions/rmsnorm/norm_17.json
do_git add .
do_run "$pre_commit" run
expect_exit 1
expect_says 'FAILED   rmsnorm/norm_17'
expect_silence_about 'FAILED   rmsnorm/norm_16' 'cannot' 'has no definition'
sed -i 's/EPSILON = 1e-3/EPSILON = 1e-6/' definitions/rmsnorm/norm_17.json
do_git add .
do_run git commit -m many
expect_exit 0
run verify --changed --staged --device "$device"
expect_exit 0
expect_says '31 definitions: 31 passed; 0 cases run'

# generated tests: told, written, added
config reftest-generate-check
do_run "$pre_commit" run
expect_exit 1
expect_says "now: reftest generate && git add 'tests/references/test_rmsnorm.py' 'tests/references/conftest.py'"
config reftest-generate
do_run "$pre_commit" run
expect_exit 1
expect_says "now: git add 'tests/references/test_rmsnorm.py' 'tests/references/conftest.py'"
expectations=$((expectations + 1))
sh -c "$(sed -n 's/^now: //p' "$work/out")" || fail "what it says to do cannot be done"
do_run git commit -m generated
expect_exit 0
config reftest-generate-check
do_run git commit -m checked
expect_exit 0
