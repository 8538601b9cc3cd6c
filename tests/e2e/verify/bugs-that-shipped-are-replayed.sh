#!/bin/sh
# tests/shipped_bugs/replay.py verifies references with bugs from released software. Its tables say for each bug what
# reftest must report, and replay.py fails if reftest reports something else. replay.py also fails if a correct
# definition does not pass, if there are too few bugs, and if docs/history.md differs from the tables.
. "$(dirname "$0")/../harness.sh"
mkdir -p tests/mutants tests/shipped_bugs docs
cp "$top/tests/mutants/run.py" tests/mutants/
cp "$top/tests/shipped_bugs/replay.py" "$top/tests/shipped_bugs/bug.py" tests/shipped_bugs/
REFTEST_PYTHON=$python
export REFTEST_PYTHON
define tiny <<END
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
END
none="rows = hidden_states.float()" # a text that is replaced by itself, which plants no mistake
# `table ENTRY…`: writes a table of 30 bugs. Each ENTRY is the text of a Bug(…). The other bugs of the table only make
# up the number 30: the function `replay` excludes them with --only.
table() {
	{
		echo '"""Norms"""'
		echo "from bug import CAUGHT, EDGE, UNDECIDED, UNSEEN, Bug, definition"
		echo "NONE = '$none'"
		echo "BUGS = ["
		for entry in "$@"; do printf '    %s,\n' "$entry"; done
		echo "]"
		echo "BUGS += [Bug('tiny', f'o/r#{i}', 'another', NONE, NONE, UNSEEN, 'why') for i in range(30 - len(BUGS))]"
	} >tests/shipped_bugs/norms.py
	printf '<!-- %s -->\n' "written by tests/shipped_bugs/replay.py --write" "end of the part that replay.py writes" >docs/history.md
	"$python" -I -S -B tests/shipped_bugs/replay.py --write
}
replay() { # replay: runs the entries whose description contains "asked"
	step="tests/shipped_bugs/replay.py"
	"$python" -I -S -B tests/shipped_bugs/replay.py "$build" --only asked --device "$device" >"$work/out" 2>"$work/err" &&
		status=0 || status=$?
}
zeros="'return (rows', 'return (0 * rows'"
own="definition('no_such_op', 'own', {'n': None}, {'x': ('float32', 'n')}, {'y': ('float32', 'n')}, 'def run(x):\\n    return x * 2')"

table "Bug('tiny', 'a/b#1', 'asked: zeros', $zeros, CAUGHT, 'why')" \
	"Bug($own, 'a/b#2 a/c@12ab', 'asked: three', 'x * 2', 'x * 3', UNDECIDED, 'why')" \
	"Bug($own, 'a/b#3', 'asked: a shape', 'x * 2', 'x[None]', CAUGHT, 'why')" \
	"Bug('tiny', 'a/b#4', 'asked: none at all', NONE, NONE, UNSEEN, 'why')" \
	"Bug('tiny', 'a/b#5', 'asked: no rows', NONE, NONE + '\\n    assert len(rows)', EDGE, 'why')"
replay
expect_exit 0
expect_says "1..7" "ok 1 - docs/history.md tells of every bug here" "ok 2 - 30 bugs" "ok 7 - $device: a/b#5: asked: no rows"
[ "$(grep -c '/a/c/commit/12ab' docs/history.md)" = 1 ] || fail "a source is not in docs/history.md"

table "Bug('tiny', 'a/b#1', 'asked: none at all', NONE, NONE, CAUGHT, 'why')" \
	"Bug('tiny', 'a/b#2', 'asked: zeros', $zeros, UNSEEN, 'why')" \
	"Bug('tiny', 'a/b#3', 'asked: decided', $zeros, UNDECIDED, 'why')" \
	"Bug('tiny', 'a/b#4', 'asked: passed', NONE, NONE, UNDECIDED, 'why')" \
	"Bug('tiny', 'a/b#5', 'asked: no edge', NONE, NONE, EDGE, 'why')"
replay
expect_exit 1
expect_says "ok 1" "not ok 3" "caught is expected, reftest says passed" "not ok 4" "passed is expected, reftest says failed" \
	"not ok 5" "not decided is expected, reftest says failed" "not ok 6" "not ok 7"

table "Bug('tiny', 'a/b#1', 'asked: zeros', $zeros, CAUGHT, 'why')"
sed -i "s/'why')/'for another reason')/" tests/shipped_bugs/norms.py
replay
expect_exit 1
expect_says "not ok 1" "--write mends it" "ok 3"
table "Bug('tiny', 'a/b#1', 'asked: zeros', $zeros, CAUGHT, 'why')"
sed -i '/asked: zeros/p' docs/history.md
replay
expect_exit 1
expect_says "not ok 1" "ok 3"
table "Bug('tiny', 'a/b#1', 'asked: zeros', $zeros, CAUGHT, 'why')"
sed -i 's/range(30/range(29/' tests/shipped_bugs/norms.py
"$python" -I -S -B tests/shipped_bugs/replay.py --write
replay
expect_exit 1
expect_says "ok 1" "not ok 2 - 29 bugs are replayed, of at least 30"

table "Bug('tiny', 'a/b#1', 'asked: zeros', $zeros, CAUGHT, 'why')"
edit definitions/rmsnorm/tiny.json "* weight.float()" "* 1.5 * weight.float()"
replay
expect_exit 1
expect_says "not ok 3" "the correct definition does not pass: failed"
