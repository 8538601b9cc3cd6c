#!/bin/sh
# changed - measures how long `verify --changed` takes if no file has changed. Usage: changed.sh [BUILD [N]]
#
# The dataset has N definitions (10 000 by default) and N workload files. The times are compared with `git status` in
# the same tree, and with a program that only calls lstat for each file. At the end, the script measures the same times
# with cold caches of the filesystem. Before the measurements, `verify` runs all small cases, and stores their verdicts.
# This takes little time, because the definitions contain only N/50 different computations (bench/tree.py).
set -eu
build=${1:-build} n=${2:-10000}
here=$(cd "$(dirname "$0")" && pwd)
for program in reftest bench/pair bench/walk; do
	[ -x "$build/$program" ] || { echo "changed: $build/$program is missing; run: make BUILD=$build all $build/bench/pair $build/bench/walk" >&2; exit 2; }
done
build=$(cd "$build" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
python3 "$here/tree.py" "$tree" "$n"
cd "$tree"
git init -q . && git add -A && git -c user.name=bench -c user.email=bench@localhost commit -q -m tree
echo "== no-change verify --changed, $n definitions and $n workload files"
"$build/reftest" verify --changed --device cpu --sizes small | tail -n 1
sleep 3 # so that no file counts as just written, neither for reftest nor for git's index
git status --short >/dev/null
"$build/reftest" verify --changed --device cpu --sizes small | tail -n 1
"$build/bench/pair" 21 "reftest verify --changed" "$build/reftest verify --changed --device cpu --sizes small" \
	"git status" "git status --short"
"$build/bench/pair" 21 "reftest verify --changed" "$build/reftest verify --changed --device cpu --sizes small" \
	"walk, one lstat each" "$build/bench/walk $tree"
echo "== the files in git's index: verify --changed --staged, as in a pre-commit hook"
"$build/reftest" verify --changed --staged --device cpu --sizes small | tail -n 1 # stores git's object id of each file
"$build/bench/pair" 21 "reftest verify --staged" "$build/reftest verify --changed --staged --device cpu --sizes small" \
	"git status" "git status --short"
"$build/bench/pair" 21 "reftest --version (start-up)" "$build/reftest --version" "true" "/bin/true"
echo "== all mtimes are new (as after a clone): verdicts are looked up by content"
find . -path ./.git -prune -o -path ./.reftest -prune -o -type f -print0 | xargs -0 touch
"$build/reftest" verify --changed --device cpu --sizes small --cached-only | tail -n 1
echo "== no summary is stored (as after a change of options): every definition is parsed and every case is looked up"
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
