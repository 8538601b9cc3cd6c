#!/bin/sh
# changed.sh [BUILD [N]] - what `verify --changed` costs when nothing changed, in a tree of N definitions and N workload
# files (10 000), beside `git status` in the same tree and a bare walk with one lstat each; then with all caches cold.
# The verdicts are made first, for real: one run for each of N/50 different contents.
set -eu
build=${1:-build} n=${2:-10000}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
python3 "$here/tree.py" "$tree" "$n"
cd "$tree"
git init -q . && git add -A && git -c user.name=bench -c user.email=bench@localhost commit -q -m tree
echo "== no-change verify --changed, $n definitions and $n workload files"
"$build/reftest" verify --changed --device cpu --sizes small | tail -n 1
sleep 3 # past the time in which a file counts as just written; git's index has the same rule
git status --short >/dev/null
"$build/reftest" verify --changed --device cpu --sizes small | tail -n 1
"$build/bench/pair" 21 "reftest verify --changed" "$build/reftest verify --changed --device cpu --sizes small" \
	"git status" "git status --short"
"$build/bench/pair" 21 "reftest verify --changed" "$build/reftest verify --changed --device cpu --sizes small" \
	"walk, one lstat each" "$build/bench/walk $tree"
echo "== the same of git's index: verify --changed --staged, as a pre-commit hook has it"
"$build/reftest" verify --changed --staged --device cpu --sizes small | tail -n 1 # learns git's names of the contents
"$build/bench/pair" 21 "reftest verify --staged" "$build/reftest verify --changed --staged --device cpu --sizes small" \
	"git status" "git status --short"
"$build/bench/pair" 21 "reftest --version (start-up)" "$build/reftest --version" "true" "/bin/true"
echo "== every mtime new (a checkout elsewhere): answered from content"
find . -path ./.git -prune -o -path ./.reftest -prune -o -type f -print0 | xargs -0 touch
"$build/reftest" verify --changed --device cpu --sizes small --cached-only | tail -n 1
echo "== no summaries (workload lines left out is another context): every definition parsed, every case looked up"
"$build/reftest" verify --changed --device cpu --sizes small --no-workloads --cached-only | tail -n 1
if [ -w /proc/sys/vm/drop_caches ]; then
	sync
	echo 3 >/proc/sys/vm/drop_caches
	echo "== page cache dropped"
	"$build/reftest" verify --changed --device cpu --sizes small | tail -n 1
	echo 3 >/proc/sys/vm/drop_caches
	start=$(date +%s%N)
	git status --short >/dev/null
	echo "git status with the page cache dropped: $((($(date +%s%N) - start) / 1000000)) ms"
fi
