#!/bin/sh
# The real program pre-commit runs the hooks of .pre-commit-hooks.yaml. If a definition is wrong, the commit is rejected
# with the definition's name, the metric and the position, in lines of at most 80 columns. Unstaged changes are not
# checked. pre-commit may run a hook several times in parallel, each time with a part of the file names. If a hook has
# written files, the hook prints the `git add` command for these files.
. "$(dirname "$0")/../harness.sh"
pre_commit=$top/.venv-tests/bin/pre-commit
[ -x "$pre_commit" ] || fail "there is no pre-commit: tools/setup.sh --tests installs it"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
export PRE_COMMIT_HOME="$work/pre-commit" PRE_COMMIT_COLOR=never COLUMNS=80
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
do_run() { # do_run WORD…: runs a command and stores its output and exit status for the expectations
	step=$*
	"$@" >"$work/out" 2>"$work/err" </dev/null && status=0 || status=$?
}
norm=definitions/rmsnorm/tiny_norm.json
given tiny_norm tiny_gemm

# The repository $work/ours contains the only file of reftest that pre-commit needs: the list of hooks. reftest is on
# PATH, as if it were installed.
mkdir -p "$work/ours" "$work/bin"
cp "$top/.pre-commit-hooks.yaml" "$work/ours/"
git -C "$work/ours" init -q
git -C "$work/ours" add .pre-commit-hooks.yaml
git -C "$work/ours" commit -qm hooks
ln -s "$reftest" "$work/bin/reftest"
PATH=$work/bin:$PATH
config() { # config HOOK [LINE…]: writes a configuration with this hook and these additional lines
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

# A wrong epsilon: the message fits in 80 columns.
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_run git commit -a -m wrong
expect_exit 1
expect_says 'Failed' 'FAILED   rmsnorm/tiny_norm' 'max abs' 'cosine' 'margin' 'at [' 'ground truth'
expectations=$((expectations + 1))
cat "$work/out" "$work/err" | awk 'length($0) > 80 { print; exit 1 }' >"$work/wide" || fail "wider than 80: $(cat "$work/wide")"
# The wrong epsilon is only in the working tree, and not in the index. pre-commit stashes it, so the hook verifies the
# correct content of the index.
do_git checkout -q .
echo text >note
do_git add note
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_run git commit -m note
expect_exit 0
expectations=$((expectations + 1))
grep -q 1e-3 $norm || fail "the edit is lost"
# The edit is partly staged, and the staged part is wrong.
do_git add $norm
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
do_run git commit -m half
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
do_git add $norm
# A commit that only deletes files is also checked.
do_git rm -q definitions/gemm/tiny_gemm.json workloads/gemm/tiny_gemm.jsonl
do_run git commit -m deleted
expect_exit 0
expect_says 'Passed'

# A definition that cannot be verified here is reported although the hook passes. With `args: [--strict]`, the commit is
# rejected.
mkdir definitions/oddity
sed 's/"tiny_norm"/"odd"/; s/"op_type": "rmsnorm"/"op_type": "oddity"/; s/"bfloat16"/"float64"/' $norm >definitions/oddity/odd.json
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

# If the hook is configured to receive file names, pre-commit runs it in parallel, each time with a part of the names.
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

# Outdated generated tests are reported, then updated, and then added to git.
config reftest-generate-check
do_run "$pre_commit" run
expect_exit 1
expect_says "next step: reftest generate && git add tests/references/test_rmsnorm.py tests/references/conftest.py"
config reftest-generate
do_run "$pre_commit" run
expect_exit 1
expect_says "next step: git add tests/references/test_rmsnorm.py tests/references/conftest.py"
expectations=$((expectations + 1))
sh -c "$(sed -n 's/^now: //p' "$work/out")" || fail "the command that it prints fails"
do_run git commit -m generated
expect_exit 0
config reftest-generate-check
do_run git commit -m checked
expect_exit 0
