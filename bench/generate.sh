#!/bin/sh
# generate - measures `reftest generate` for N definitions (1 000 by default). Usage: generate.sh [BUILD [N]]
#
# For each layout of the test files (op-type and definition), the script measures three runs: one after all files were
# deleted, one with no change, and one after a change of one definition. For comparison, it measures how long it takes
# to write and rename the same number of temporary files. The run after the deletion may take at most 1 s, and the run
# with no change at most 50 ms.
set -eu
build=$(cd "${1:-build}" && pwd) n=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
python3 "$here/tree.py" "$tree" "$n"
cd "$tree"
timed() { # LABEL COMMAND…
	label=$1
	shift
	start=$(date +%s%N)
	"$@" >/dev/null
	printf '%-40s %6d ms\n' "$label" $((($(date +%s%N) - start) / 1000000))
}
sleep 1 # so that no definition counts as just written
echo "== generate, $n definitions"
for layout in op-type definition; do
	timed "$layout: all files new" "$build/reftest" generate --layout "$layout"
	[ "$layout" = op-type ] || timed "as many files written and renamed" python3 -I -S -c '
import os, sys
os.mkdir("limit")
for name in os.listdir("tests/references"):
    if os.path.isdir("tests/references/" + name):
        continue
    with open("tests/references/" + name, "rb") as file:
        text = file.read()
    with open("limit/." + name, "wb", buffering=0) as file:
        file.write(text)
    os.rename("limit/." + name, "limit/" + name)'
	timed "$layout: nothing changed" "$build/reftest" generate
	one=$(find definitions -name '*.json' | sort | head -n 1)
	printf '\n' >>"$one"
	sleep 1
	timed "$layout: one definition written" "$build/reftest" generate
done
