#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# --staged verifies the contents of git's index, whatever the working tree contains. The test has partly staged files,
# renames, deletions, files added with intent-to-add, conflicts, tensors and LFS pointers. Stored verdicts are looked up
# by the hashes of the files in git's index.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
do_git() { git -c user.name=test -c user.email=test@localhost "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
staged() { verify --staged "$@"; }
norm=definitions/rmsnorm/tiny_norm.json
blob=blob/workloads/rmsnorm/tiny_norm/rows.safetensors
given tiny_norm tiny_gemm

staged
expect_exit 2
expect_says 'is not in a git repository'
do_git init -q -b main .
staged
expect_exit 3 # an empty index has no definitions
do_git add definitions workloads blob
staged
expect_exit 0
expect_ran 7
staged --changed
expect_ran 0
verify # the working tree has the same contents, so verdicts of the index are accepted here, too
expect_ran 0
do_git commit -qm good

# A commit contains the objects that the index names, whatever `git replace` makes git show instead of them.
good=$(git rev-parse ":$norm")
bad=$(sed 's/EPSILON = 1e-6/EPSILON = 1e-3/' $norm | git hash-object -w --stdin)
do_git replace "$good" "$bad"
staged --force tiny_norm
expect_exit 0
do_git replace -d "$good"

# First the working tree is wrong and the index is correct, then the reverse.
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-3'
staged --changed
expect_exit 0
expect_ran 0
verify --changed
expect_exit 1
do_git add $norm
edit $norm 'EPSILON = 1e-3' 'EPSILON = 1e-6'
staged
expect_exit 1
expect_status tiny_norm failed
expect_cached 7
verify
expect_exit 0
expect_ran 0
run verify --changed --staged --device "$device" --sizes small
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
run explain --staged --device "$device" tiny_norm
expect_says 'tiny_norm is failed'
run explain --device "$device" tiny_norm
expect_silence_about 'tiny_norm is failed'

# A file has two edits, and only one of them is staged.
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-6  # half'
do_git add $norm
edit $norm '# half' '# whole'
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-2'
staged
expect_exit 0
expect_ran 0
do_git checkout -q $norm
do_git commit -qm half

# A parse error is reported with its position in the index's version of the file.
echo '{' >$norm
do_git add $norm
do_git restore --source HEAD $norm
staged
expect_exit 2
expect_says "$norm:"
do_git add $norm

# Files are renamed, deleted, and added with intent-to-add.
do_git mv definitions/gemm/tiny_gemm.json definitions/gemm/other_gemm.json
sed -i 's/"tiny_gemm"/"other_gemm"/' definitions/gemm/other_gemm.json
do_git add definitions/gemm
staged
expect "sorted(d) == ['other_gemm', 'tiny_norm']"
expect_exit 0
expect_ran 0
do_git rm -q --cached definitions/gemm/other_gemm.json
staged
expect "sorted(d) == ['tiny_norm']"
echo 'soon' >definitions/gemm/soon.json
do_git add -N definitions/gemm/soon.json
staged
expect "sorted(d) == ['tiny_norm']"
expect_exit 0
do_git update-index --split-index # for a split index, the program calls git to list it
do_git add definitions/gemm/other_gemm.json
staged
expect "sorted(d) == ['other_gemm', 'tiny_norm']"
expect_exit 0
do_git update-index --no-split-index
rm definitions/gemm/soon.json
do_git rm -q --cached definitions/gemm/soon.json
do_git commit -qm renamed

# reftest and the judge process also read tensor files from the index.
cp $blob "$work/rows"
echo garbage >$blob
staged
expect_exit 0
expect_ran 0
mkdir .reftest/staged-killed .reftest/staged-running
echo x >.reftest/staged-killed/x
touch -d '2 days ago' .reftest/staged-killed
staged --force tiny_norm
expect_exit 0
expect_ran 4
expect "c['tiny_norm', 'workload:11111111-0000-4000-8000-000000000002']['status'] == 'passed'"
[ "$(echo .reftest/staged-*)" = .reftest/staged-running ] || fail "a folder of this run is left, or one of another process was removed: $(echo .reftest/staged-*)"
do_git add $blob
cp "$work/rows" $blob
staged
expect_exit 2
expect_status tiny_norm invalid
do_git rm -q -f --cached $blob
staged
expect_exit 3
expect_says 'is not in git'"'"'s index, so it would be missing from the commit'
# The command in a message can be pasted into a shell, whatever the path is.
cp workloads/rmsnorm/tiny_norm.jsonl "$work/lines"
cp $blob "blob/it's \$(id).safetensors"
sed -i "s#blob/workloads/rmsnorm/tiny_norm/rows#blob/it's \$(id)#g" workloads/rmsnorm/tiny_norm.jsonl
do_git add workloads
staged
expect_exit 3
sh -c "$(value "next(m.split('\`')[1] for m in all_of('tiny_norm', 'message') if m and '\`git add' in m)")" || fail "the command that it prints fails"
staged
expect_exit 0
do_git rm -q -f --cached "blob/it's \$(id).safetensors"
rm "blob/it's \$(id).safetensors"
cp "$work/lines" workloads/rmsnorm/tiny_norm.jsonl
do_git add workloads
echo blob/ >.gitignore # the folder is ignored, so no commit contains it
staged
expect_exit 0
# git exits with an error for a path in a nested repository. reftest still reads the paths that come after this one.
cp workloads/rmsnorm/tiny_norm.jsonl "$work/lines"
mkdir blob/inner
git -C blob/inner init -q
git -C blob/inner -c user.name=test -c user.email=test@localhost commit -q --allow-empty -m inner
echo blob/workloads/ >.gitignore
do_git -c advice.addEmbeddedRepo=false add blob/inner
sed -n 's#blob/workloads/rmsnorm/tiny_norm/rows#blob/inner/rows#; s/0000-4000/0000-4001/; /inner/p' "$work/lines" >>workloads/rmsnorm/tiny_norm.jsonl
do_git add workloads
staged
expect_exit 3
expect "c['tiny_norm', 'workload:11111111-0000-4000-8000-000000000002']['status'] == 'passed'"
cp "$work/lines" workloads/rmsnorm/tiny_norm.jsonl
do_git add workloads
do_git rm -q -f --cached blob/inner
rm -rf blob/inner .gitignore

# If the index contains an LFS pointer, the file's content is read from the working tree, or else from the storage of
# LFS.
hash=$(sha256sum $blob | cut -d ' ' -f 1)
size=$(wc -c <$blob)
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$hash" "$size" >"$work/pointer"
pointer=$(git hash-object -w "$work/pointer")
do_git update-index --add --cacheinfo "100644,$pointer,$blob"
staged
expect_exit 0
expect_ran 0
echo other >$blob
staged --force tiny_norm
expect_exit 3
expect_says 'git lfs fetch --include'
folder=.git/lfs/objects/$(printf %.2s "$hash")/$(printf %s "$hash" | cut -c 3-4)
mkdir -p "$folder"
cp "$work/rows" "$folder/$hash"
staged --force tiny_norm
expect_exit 0
expect_ran 4
printf x | dd of="$folder/$hash" bs=1 conv=notrunc 2>/dev/null # the content no longer matches the pointer
staged --force tiny_norm
expect_exit 3
cp "$work/rows" $blob
do_git add $blob

# A merge conflict is reported with the command that resolves it.
do_git checkout -qb other
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-5'
do_git commit -qam other
do_git checkout -q main
edit $norm 'EPSILON = 1e-6' 'EPSILON = 1e-4'
do_git commit -qam main
git -c user.name=test -c user.email=test@localhost merge -q other >/dev/null 2>&1 && fail "there is no conflict"
staged
expect_exit 2
expect_says "$norm: the file has a merge conflict in git's index; resolve it, then \`git add $norm\`"
do_git checkout -q --ours $norm
edit $norm 'EPSILON = 1e-4' 'EPSILON = 1e-6'
do_git add $norm
staged
expect_exit 0
expect_ran 0

# Files that reftest ignores in the working tree, such as hidden files, are also ignored in the index.
do_git commit -qm merged
for link in definitions-old workloads.bak definitions/.hidden definitions/rmsnorm/notes.txt definitions/rmsnorm/.tiny.json \
	workloads/rmsnorm/tiny_norm.json; do
	ln -s elsewhere "$link"
	do_git add "$link"
done
staged
expect_exit 0
expect "r['problems'] == []"
ln -s elsewhere definitions/other
do_git add definitions/other
staged
expect_exit 2
expect "len(r['problems']) == 1 and r['problems'][0].startswith('definitions/other: ')"
do_git rm -q --cached definitions/other

# A symbolic link is not followed, and a message says so.
ln -s tiny_norm.json definitions/rmsnorm/linked.json
do_git add definitions/rmsnorm/linked.json
staged
expect_exit 2
expect_says 'definitions/rmsnorm/linked.json: git'"'"'s index has a symbolic link at this path'
