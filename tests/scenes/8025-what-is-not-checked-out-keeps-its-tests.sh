#!/bin/sh
# 8025: a definition that git has and a sparse checkout leaves out is not gone: no generated file loses its class, none that is
# only not here is written anew, each is told with the command that checks it out, and that command is the remedy. What was
# deleted goes as ever.
. "$(dirname "$0")/scene.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
norms=tests/references/test_rmsnorm.py gemms=tests/references/test_gemm.py
unchanged() { # what git has of the tests is here as it was
	expectations=$((expectations + 1))
	git diff --quiet HEAD -- tests || fail "$step: $(git diff --stat HEAD -- tests)"
}
everything() { do_git sparse-checkout disable && do_git reset -q --hard; }
only() { # only PATTERN…: the working tree is to have what these leave of it
	everything
	do_git sparse-checkout set --no-cone '/*' "$@"
}
remedy() { # does what the last sentence told
	sh -c "$(sed -n 's/.*here.*`\(git .*\)`.*/\1/p' "$work/out")" >"$work/git" 2>&1 || fail "$step: its remedy: $(cat "$work/git")"
}
refused() { # refused WORD…: whether it only looks or would write, it exits with 1 and leaves everything as it is
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
verify --no-workloads # all that is ever run here; what follows is about what is known
expect_exit 0
do_git add .
do_git commit -qm first

# a whole op_type: nothing was asked of it, so it is left alone and only `generate` says so
only '!/definitions/gemm/'
for how in --check ''; do
	run generate $how
	expect_exit 0
	expect_says "test_gemm.py is left as it is: what is tested there is in git and not checked out here" \
		'3 definitions: 3 with a test' ' 0 removed, 2 current'
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
expect_says '4 definitions: 4 with a test' '3 current'

# some of an op_type: its file is current as long as the others are
only '!/definitions/rmsnorm/tiny_norm.json' '!/definitions/rmsnorm/tiny_third.json'
for how in --check ''; do
	run generate $how
	expect_exit 0
	expect_says '2 definitions: 2 with a test' '3 current'
	expect_silence_about 'checked out'
done
edit definitions/rmsnorm/tiny_other.json 'import torch' '# edited\nimport torch'
refused
refused --force
refused --op-type rmsnorm
expect_says 'test_rmsnorm.py is out of date and left as it is: definitions/rmsnorm/tiny_norm.json and 1 more are in git and'
verify --no-workloads
expect_exit 0
expect_says 'test_rmsnorm.py is out of date and left as it is'
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

# of a file that is not there nobody can tell which classes it had
only '!/definitions/rmsnorm/tiny_other.json'
rm $norms
refused
expect_says 'test_rmsnorm.py is not written: definitions/rmsnorm/tiny_other.json is in git and not checked out here, and its tests'
[ ! -e $norms ] || fail "a file came back without a class that git has"
# nor is one removed because of those that are here
do_git checkout -q -- tests
rm definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py is left as it is: what is tested there'
unchanged

# a class goes with a definition that was deleted, and a file with the last, whatever else is not checked out
only '!/definitions/gemm/'
rm definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py written'
rm definitions/rmsnorm/*.json
run generate
expect_exit 0
expect_says 'test_rmsnorm.py removed' 'test_gemm.py is left as it is'
everything
do_git rm -q definitions/gemm/tiny_gemm.json
run generate
expect_exit 0
expect_says 'test_gemm.py removed'
do_git reset -q --hard

# the tests themselves: what git has is not written a second time
only '!/tests/'
refused
expect_says 'test_gemm.py and 1 more are in git and not checked out here, so they are not written'
[ ! -e tests ] || fail "tests were written that git has"
verify --no-workloads
expect_exit 0
[ ! -e tests ] || fail "verify wrote tests that git has"
run generate
remedy
run generate --check
expect_exit 0

# marked by hand, where there is no sparse checkout to be told of more
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
# one that is here all the same is here
do_git update-index --skip-worktree definitions/rmsnorm/tiny_norm.json
rm definitions/rmsnorm/tiny_third.json
edit definitions/rmsnorm/tiny_norm.json 'import torch' '# edited\nimport torch'
run generate
expect_exit 0
expect_says '3 definitions: 3 with a test' 'test_rmsnorm.py written'
expect_silence_about 'checked out'
do_git update-index --no-skip-worktree definitions/rmsnorm/tiny_norm.json
do_git reset -q --hard

# the other layout, and the way from one to the other
run generate --layout definition
expect_exit 0
expect_says 'test_gemm.py removed'
do_git add -A
do_git commit -qm 'a file each'
only '!/definitions/gemm/'
rm definitions/rmsnorm/tiny_third.json
run generate
expect_exit 0
expect_says 'test_tiny_gemm.py is left as it is' 'test_tiny_third.py removed'
[ -e tests/references/test_tiny_gemm.py ] || fail "the file of a definition that is not checked out was removed"
run generate --layout op-type
expect_exit 0
expect_says 'test_tiny_norm.py removed' 'test_tiny_gemm.py is left as it is'
do_git reset -q --hard HEAD^

# a running watcher sees definitions go, and git's index says why
everything
run generate
watch
do_git sparse-checkout set --no-cone '/*' '!/definitions/gemm/' '!/definitions/rmsnorm/tiny_other.json'
await "e['event'] == 'batch' and e['gone'] > 0"
edit definitions/rmsnorm/tiny_norm.json 'import torch' '# edited\nimport torch'
await "e['event'] == 'notice' and 'test_rmsnorm.py is out of date and left as it is' in e['message']"
await_batch
end_watch
unchanged

# what the index's own file does not tell by itself; a dataset in a folder of the repository
everything
mkdir -p data/set
do_git mv definitions workloads tests .gitignore data/set/
do_git commit -qm folder
do_git sparse-checkout set --cone --sparse-index data/set/definitions/rmsnorm data/set/tests/references
cd data/set
run generate --check
expect_exit 0
expect_says 'test_gemm.py is left as it is' "sparse-checkout add 'data/set/definitions/gemm'"
remedy
run generate --check
expect_exit 0
expect_says '4 definitions'
cd "$root"
do_git reset -q --hard HEAD^
everything

# While git holds its lock, its index is still that of before. Nothing says that the program waits, so whoever does not is
# given a while to show it; a lock counts for ten seconds, and a machine that stood still for so long plays this again.
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
expect_says 'test_gemm.py is left as it is'
unchanged
do_git update-index --no-skip-worktree definitions/gemm/tiny_gemm.json
do_git reset -q --hard

# what was verified of it is still needed, a hand-written test of it is not one of another definition, and it has changed
# since, not gone
only '!/definitions/gemm/'
run cache gc --days 0 --dry-run
expect_exit 0
expect_says ': 0 verdicts would be removed'
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
