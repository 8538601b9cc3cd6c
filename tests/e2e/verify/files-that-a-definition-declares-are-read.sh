#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build. A definition may name files of its dataset that
# its reference reads. The reference finds exactly these files, read-only, in its working directory. Verdicts depend on
# the content of the declared files. The verdicts are cached. If a declared file changes, the cases run again. Files
# that are not declared do not exist for the reference.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# `declare_reads NAME LIST`: defines a norm that declares the files in the JSON list LIST. Its reference comes from
# standard input.
declare_reads() {
	define "$1"
	edit "definitions/rmsnorm/$1.json" '"reference":' "\"reads\": $2, \"reference\":"
}
norm='    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps()) * weight.float()).to(hidden_states.dtype)'
mkdir -p tables/deep
echo 1e-6 >tables/eps.txt
echo 1e-6 >tables/undeclared.txt
printf '\275\067\206\065' >tables/deep/eps.bin # 1e-6 as a float32, little-endian
declare_reads text '["tables/eps.txt"]' <<P
import torch


def eps():
    with open("tables/eps.txt", "r", encoding="utf-8") as file:
        return float(file.readline())


def run(hidden_states, weight):
$norm
P
declare_reads binary '["tables/eps.txt", "tables/deep/eps.bin"]' <<P
import torch


def eps():
    return torch.frombuffer(bytearray(open('tables/deep/eps.bin', 'rb').read()), dtype=torch.float32)


def run(hidden_states, weight):
$norm
P
verify
expect_exit 0
expect_ran 4
expect "all(all_of('text', 'kept') + all_of('binary', 'kept')) and not d['text']['notes']"
expect_nothing_to_do
rm -rf .reftest/cache
verify --jobs 2
expect_exit 0

# If a file changes, only the cases of the definitions that declare this file run again.
sleep 0.01
echo 1e-1 >tables/eps.txt
expect_why text 'reads.tables/eps.txt'
verify
expect_exit 1
expect_status text failed numeric
expect_status binary passed
expect_ran 4 # binary declares the file, too
echo 2e-6 >tables/undeclared.txt
verify
expect_ran 0
echo 1e-6 >tables/eps.txt
verify
expect_exit 0
expect_ran 0 # the earlier verdicts hold again
printf '\275\067\206\075' >tables/deep/eps.bin
verify
expect_exit 1
expect_ran 2
printf '\275\067\206\065' >tables/deep/eps.bin

# The verdict of a reference is cached only if each path that the reference opens is a literal string in its source code
# and is declared.
for call in 'open("tables/" + "eps.txt")' 'open("tables/undeclared.txt")'; do
	declare_reads other '["tables/eps.txt"]' <<P
import torch


def unused():
    return $call


def eps():
    return 1e-6


def run(hidden_states, weight):
$norm
P
	verify other
	expect_exit 0
	expect "not any(all_of('other', 'kept'))"
	expect_says "not cached" "'open'"
done

# A reference finds only the declared files, and cannot change them or make new files.
declare_reads other '["tables/eps.txt"]' <<'P'
import os

import torch


def attempt(action):
    try:
        action()
        return True
    except OSError:
        return False


def run(hidden_states, weight):
    found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names)
    done = [name for name, action in {
        "undeclared": lambda: open("tables/undeclared.txt"),
        "definition": lambda: open("definitions/rmsnorm/other.json"),
        "write": lambda: open("tables/eps.txt", "w"),
        "append": lambda: open("tables/eps.txt", "a"),
        "new": lambda: open("tables/new.txt", "x"),
        "remove": lambda: os.remove("tables/eps.txt"),
    }.items() if attempt(action)]
    raise AssertionError("found %s, did %s." % (found, done))
P
verify other
expect_status other error raised
expect "\"found ['./tables/eps.txt'], did [].\" in c['other', 'small:batch_size=1']['message']"
[ "$(cat tables/eps.txt)" = 1e-6 ] || fail "the reference changed the file"
rm definitions/rmsnorm/other.json

# If a file is missing or cannot be read, the cases of the definition are invalid, and a message says why.
broken() { # broken SENTENCE
	verify
	expect_exit 2
	expect_status text invalid
	expect "all('$1' in m for m in all_of('text', 'message'))"
}
mv tables/eps.txt "$work/eps"
edit definitions/rmsnorm/binary.json '"tables/eps.txt", ' ''
broken 'tables/eps.txt: the file does not exist'
expect_status binary passed
ln -s "$work/eps" tables/eps.txt
broken 'tables/eps.txt: the path contains a symbolic link; replace the link with the file itself'
ln -sf undeclared.txt tables/eps.txt
broken 'tables/eps.txt: the path contains a symbolic link'
rm tables/eps.txt
mkdir tables/eps.txt
broken 'tables/eps.txt'
rmdir tables/eps.txt
mkfifo tables/eps.txt
broken 'tables/eps.txt'
rm tables/eps.txt
truncate -s 33554433 tables/eps.txt
broken 'tables/eps.txt: the file has 33554433 bytes, more than the limit of 33554432'
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >tables/eps.txt
verify
expect_exit 3
expect_status text skipped missing_blob
expect "all('git lfs pull --include tables/eps.txt' in m for m in all_of('text', 'message'))"
cp "$work/eps" tables/eps.txt
verify
expect_exit 0
expect_ran 0

# Only files of the dataset can be declared.
cp definitions/rmsnorm/text.json "$work/text.json"
for path in /etc/passwd ../beside tables/../../beside .git/config .reftest/cache/data.mdb tables/.hidden ./tables/eps.txt \
	tables//eps.txt tables/; do
	sed "s#\"reads\": \[\"tables/eps.txt\"\]#\"reads\": [\"$path\"]#" "$work/text.json" >definitions/rmsnorm/text.json
	verify text
	expect_exit 2
	expect_says "expected a path relative to the dataset's folder"
done
cp "$work/text.json" definitions/rmsnorm/text.json

# The watcher, --staged and `affected` notice changes of declared files.
watch
expect_events "e['passed'] == 2"
echo 1e-1 >tables/eps.txt
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('text', 'failed')]"
cp "$work/eps" tables/eps.txt
await_batch
expect_events "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('text', 'passed', 0)]"
end_watch

git init -q -b main .
echo .reftest/ >.gitignore
git add .gitignore definitions
verify --staged
expect_exit 3
expect "'run \`git add tables/eps.txt\`' in c['text', 'small:batch_size=1']['message']"
git add tables
echo 1e-1 >tables/eps.txt
verify --staged --force
expect_exit 0
expect_ran 4
git add tables
cp "$work/eps" tables/eps.txt
verify --staged --force
expect_exit 1
expect_status text failed
run affected tables/eps.txt
expect_says rmsnorm/text
expect_silence_about rmsnorm/binary

# Generated tests call the reference in the dataset's folder.
if [ "$device" = cpu ]; then
	run generate
	pytest_is_here
	(cd / && "$python" $pytest -q -p no:cacheprovider "$root/tests/references/test_rmsnorm.py" -k text --device cpu) \
		>"$work/out" 2>"$work/err" && status=0 || status=1
	expect_exit 0
	expect_says passed
fi
