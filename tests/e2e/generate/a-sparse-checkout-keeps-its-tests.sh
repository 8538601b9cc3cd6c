#!/bin/sh
# If git tracks a definition and a sparse checkout excludes it, the definition does not count as deleted. Generated
# files keep the test class of an excluded definition. A generated file that git tracks but has not checked out is not
# written. Each file that is not written is reported with a command that checks it out, and this command works. The
# classes of deleted definitions are removed as usual.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
norms=tests/references/test_rmsnorm.py gemms=tests/references/test_gemm.py
unchanged() { # unchanged: expects that the generated tests equal those in git
	expectations=$((expectations + 1))
	git diff --quiet HEAD -- tests || fail "$step: $(git diff --stat HEAD -- tests)"
}
everything() { do_git sparse-checkout disable && do_git reset -q --hard; }
only() { # only PATTERN…: restricts the working tree to these patterns
	everything
	do_git sparse-checkout set --no-cone '/*' "$@"
}
remedy() { # remedy: runs the command of the last message
	sh -c "$(sed -n 's/.*here.*`\(git .*\)`.*/\1/p' "$work/out")" >"$work/git" 2>&1 || fail "$step: its remedy: $(cat "$work/git")"
}
refused() { # refused WORD…: expects that `generate`, with and without --check, exits with 1 and changes nothing
	for how in --check ''; do
		run generate $how "$@"
		expect_exit 1
		expect_says ' 0 removed, '
		[ -z "$how" ] || expect_says ' 0 out of date, '
		[ -n "$how" ] || expect_says ' 0 written, '
	done
}
given tiny_norm tiny_gemm
for name in tiny_other tiny_third; do
	sed "s/\"tiny_norm\"/\"$name\"/" definitions/rmsnorm/tiny_norm.json >definitions/rmsnorm/$name.json
done
echo .reftest >.gitignore
do_git init -q -b main .
run generate
expect_exit 0
verify --no-workloads # the only run in this test; the rest uses stored verdicts
expect_exit 0
do_git add .
do_git commit -qm first

# If a sparse checkout excludes all definitions of an op_type, the test file of the op_type is left unchanged.
# `generate` reports this, and `verify` does not.
only '!/definitions/gemm/'
for how in --check ''; do
	run generate $how
	expect_exit 0
	expect_says "test_gemm.py is left unchanged: the definitions tested there are in git but not checked out here" \
		'3 definitions: 3 with a test' ' 0 removed, 8 current'
done
verify --no-workloads
expect_exit 0
expect_silence_about 'test_gemm.py'
unchanged
run generate
remedy
run generate
expect_exit 0
expect_silence_about 'checked out'
expect_says '4 definitions: 4 with a test' '9 current'

# If a sparse checkout excludes some definitions of an op_type, the test file of the op_type counts as current as long
# as the other definitions are unchanged.
only '!/definitions/rmsnorm/tiny_norm.json' '!/definitions/rmsnorm/tiny_third.json'
for how in --check ''; do
	run generate $how
	expect_exit 0
	expect_says '2 definitions: 2 with a test' '9 current'
	expect_silence_about 'checked out'
done
edit definitions/rmsnorm/tiny_other.json 'import torch' '# edited\nimport torch'
refused
refused --force
refused --op-type rmsnorm
expect_says 'test_rmsnorm.py is out of date and left unchanged: definitions/rmsnorm/tiny_norm.json and 1 more are in git but'
verify --no-workloads
expect_exit 0
expect_says 'test_rmsnorm.py is out of date and left unchanged'
unchanged
run generate --print test_rmsnorm.py
expect_says '# edited'
run generate
remedy
run generate
expect_exit 0
expect_says 'test_rmsnorm.py written' '4 with a test'
expectations=$((expectations + 1))
git diff HEAD -- tests | grep -q '^-class' && fail "the remedy lost a class"

# If the generated file is missing, reftest does not know the test classes of the excluded definitions. Therefore it
# does not write the file.
only '!/definitions/rmsnorm/tiny_other.json'
rm $norms
refused
expect_says 'test_rmsnorm.py is not written: definitions/rmsnorm/tiny_other.json is in git but not checked out here, so writing the file would delete its tests'
[ ! -e $norms ] || fail "a file was written without a class that it has in git"
# A generated file is kept if the definitions of all its classes are in git but not checked out.
do_git checkout -q -- tests
rm definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py is left unchanged: the definitions tested there'
unchanged

# When a definition is deleted, its class is removed; when the last definition of a file is deleted, the file is
# removed. Both also happen while definitions of other op_types are not checked out.
only '!/definitions/gemm/'
rm definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py written'
rm definitions/rmsnorm/*.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py removed' 'test_gemm.py is left unchanged'
everything
do_git rm -q definitions/gemm/tiny_gemm.json
run generate
expect_exit 0
expect_says 'test_gemm.py removed'
do_git reset -q --hard

# If a sparse checkout excludes the generated tests, reftest does not write them again, because git tracks them.
only '!/tests/'
refused
expect_says 'test_gemm.py and 1 more are in git but not checked out here, so they are not written'
[ ! -e tests ] || fail "tests were written although git tracks them"
verify --no-workloads
expect_exit 0
[ ! -e tests ] || fail "verify wrote tests although git tracks them"
run generate
remedy
run generate --check
expect_exit 0

# Files are marked skip-worktree by hand, without a sparse checkout.
everything
do_git update-index --skip-worktree definitions/gemm/tiny_gemm.json
rm definitions/gemm/tiny_gemm.json
run generate
expect_exit 0
expect_says 'update-index --no-skip-worktree'
unchanged
remedy
run generate --check
expect_exit 0
expect_silence_about 'checked out'
# A file that is marked skip-worktree but exists counts as existing.
do_git update-index --skip-worktree definitions/rmsnorm/tiny_norm.json
rm definitions/rmsnorm/tiny_third.json
edit definitions/rmsnorm/tiny_norm.json 'import torch' '# edited\nimport torch'
run generate
expect_exit 0
expect_says '3 definitions: 3 with a test' 'test_rmsnorm.py written'
expect_silence_about 'checked out'
do_git update-index --no-skip-worktree definitions/rmsnorm/tiny_norm.json
do_git reset -q --hard

# Tests of excluded definitions are also kept in the layout with one file for each definition, and when the layout
# changes.
run generate --layout definition
expect_exit 0
expect_says 'test_gemm.py removed'
do_git add -A
do_git commit -qm 'a file each'
only '!/definitions/gemm/'
rm definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_tiny_gemm.py is left unchanged' 'test_tiny_third.py removed'
[ -e tests/references/test_tiny_gemm.py ] || fail "the file of a definition that is not checked out was removed"
run generate --layout op-type
expect_exit 0
expect_says 'test_tiny_norm.py removed' 'test_tiny_gemm.py is left unchanged'
do_git reset -q --hard HEAD^

# A sparse checkout makes definitions disappear while a watcher runs. The watcher learns from git's index that they are
# not deleted.
everything
run generate
watch
do_git sparse-checkout set --no-cone '/*' '!/definitions/gemm/' '!/definitions/rmsnorm/tiny_other.json'
await "e['event'] == 'batch' and e['gone'] > 0"
edit definitions/rmsnorm/tiny_norm.json 'import torch' '# edited\nimport torch'
await "e['event'] == 'notice' and 'test_rmsnorm.py is out of date and left unchanged' in e['message']"
await_batch
end_watch
unchanged

# The dataset is in a folder of the repository, and the index is a split index. The main file of a split index does not
# list all paths.
everything
mkdir -p data/set
do_git mv definitions workloads tests .gitignore data/set/
do_git commit -qm folder
do_git sparse-checkout set --cone --sparse-index data/set/definitions/rmsnorm data/set/tests/references
cd data/set
run generate --check
expect_exit 0
expect_says 'test_gemm.py is left unchanged' "sparse-checkout add 'data/set/definitions/gemm'"
remedy
run generate --check
expect_exit 0
expect_says '4 definitions'
cd "$root"
do_git reset -q --hard HEAD^
everything

# While git holds index.lock, the index file is still the old one, and reftest waits without a message. If reftest did
# not wait, it would read the old index during the sleep below, and fail. reftest waits at most ten seconds for a lock.
# Therefore the test repeats the step if it takes eight seconds or more on a busy machine.
cp .git/index "$work/before"
for _ in 1 2 3 4 5; do
	cp "$work/before" "$work/index"
	GIT_INDEX_FILE="$work/index" git update-index --skip-worktree definitions/gemm/tiny_gemm.json
	begun=$(date +%s)
	: >.git/index.lock
	rm -f definitions/gemm/tiny_gemm.json
	begin generate
	sleep 0.3
	mv "$work/index" .git/index
	rm .git/index.lock
	ended
	[ $(($(date +%s) - begun)) -ge 8 ] || break
	cp "$work/before" .git/index
	do_git reset -q --hard
done
expect_exit 0
expect_says 'test_gemm.py is left unchanged'
unchanged
do_git update-index --no-skip-worktree definitions/gemm/tiny_gemm.json
do_git reset -q --hard

# `cache gc` keeps the verdicts of an excluded definition. A hand-written test of an excluded definition is not mistaken
# for a test of another definition. An excluded definition that the branch edited counts as changed, not as deleted.
only '!/definitions/gemm/'
run cache gc --days 0 --dry-run
expect_exit 0
expect_says ': gc would remove 0 verdicts that'
{
	printf 'import torch\n\n\n# not as tiny_norm has it\ndef run(A, B):\n    return A @ B.T\n\n\n'
	printf 'def test_it():\n    assert torch.equal(run(1, 2), 3)\n'
} >tests/references/test_tiny_gemm.py
run generate --audit
expect_exit 0
expect_says '1 hand-written test file, 0 findings'
mv tests/references/test_tiny_gemm.py tests/references/test_by_hand.py
sed -i 's/# not/# tiny_gemm, not/' tests/references/test_by_hand.py
run generate --audit
expect_exit 0
rm tests/references/test_by_hand.py
everything
do_git checkout -q -b mine
edit definitions/gemm/tiny_gemm.json 'import torch' '# edited\nimport torch'
do_git commit -qam edited
only '!/definitions/gemm/'
run affected --since main --json
expect "r['gone'] == [] and r['not_checked_out'] == ['definitions/gemm/tiny_gemm.json']"
expect "r['tests'] == ['tests/references/test_gemm.py']"
