#!/bin/sh
# For each changed definition, `reftest diff` runs the current reference and the reference of the same definition in a
# commit. It says whether both references have the same code. If their code differs, it says whether their outputs are
# the same, differ within the bounds, or differ by more. `reftest diff` stores nothing, and needs no ground truth. If a
# reference cannot run, its definition is not compared.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
norm() {
	define "$1" <<P
import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * scale * weight.to(torch.float32)).to(torch.bfloat16)
P
}
# `oddity NAME`: changes the op_type and the description of a definition, so that reftest finds no op family for it.
oddity() {
	mkdir -p definitions/oddity
	sed 's/"op_type": "rmsnorm"/"op_type": "oddity"/; s/A small RMS norm. Epsilon is 1e-6./Rows./' "definitions/rmsnorm/$1.json" >"definitions/oddity/$1.json"
	rm "definitions/rmsnorm/$1.json"
}
behaviours() { # the JSON's definitions, one a line: "name behaviour"
	"$python" -I -S -c '
import json, sys
for one in json.load(open(sys.argv[1]))["definitions"]:
    print(one["name"], one["behaviour"])' "$work/out" | sort
}
expect_behaviours() {
	expectations=$((expectations + 1))
	printf '%s\n' "$@" | sort >"$work/wanted"
	behaviours >"$work/found"
	cmp -s "$work/wanted" "$work/found" || fail "$step: $(tr '\n' ';' <"$work/found")"
}

for name in same kept spaced careful wrong raises slow broken gone bounds zeros; do norm $name; done
norm other
oddity other
norm overwrites
oddity overwrites
oddity zeros
edit definitions/oddity/zeros.json 'return (x * scale' 'return -torch.relu(x * scale'
do_git init -q -b main .
do_git add definitions
do_git commit -q -m first
echo '.reftest/' >.git/info/exclude

# Nothing differs.
run diff --device "$device"
expect_exit 0
expect_says '0 definitions differ from'

edit definitions/rmsnorm/spaced.json 'x.pow(2)' 'x.pow( 2 )'
edit definitions/oddity/zeros.json 'return -torch.relu' 'return 0 - torch.relu'
edit definitions/rmsnorm/bounds.json '"axes"' '"tolerance": {"atol": 0.1}, "axes"'
edit definitions/rmsnorm/same.json 'x.pow(2)' '(x * x)'
edit definitions/rmsnorm/careful.json '(x * scale * weight.to(torch.float32)).to(torch.bfloat16)' '(x * scale).to(torch.bfloat16) * weight'
edit definitions/rmsnorm/wrong.json '+ 1e-6' '+ 1e-3'
edit definitions/rmsnorm/raises.json 'import torch' 'import torch\n\nassert False, \"planted\"'
edit definitions/oddity/other.json 'x * scale' 'x / x.norm(dim=-1, keepdim=True)'
edit definitions/oddity/overwrites.json 'x = hidden_states' 'hidden_states.zero_()\n    x = hidden_states'
rm definitions/rmsnorm/gone.json
norm added
run diff --device "$device" --sizes small --format json
expect_exit 1
expect_behaviours 'rmsnorm/spaced text' 'rmsnorm/same same' 'rmsnorm/careful rounding' 'rmsnorm/wrong changed' \
	'rmsnorm/raises unknown' 'oddity/other changed' 'oddity/overwrites changed' 'rmsnorm/gone deleted' \
	'rmsnorm/added added' 'rmsnorm/bounds text' 'oddity/zeros same'

run diff --device "$device" --sizes small
expect_exit 1
expect_says 'changed  rmsnorm/wrong: ' ' cases differ' ' before ' 'unknown  rmsnorm/raises: ' 'planted' \
	'text     rmsnorm/spaced: the schema and the code are the same' 'rounding rmsnorm/careful: within the bounds' \
	'same     rmsnorm/same: the same bits in ' 'the code are the same; `tolerance` changed' 'also in small:' 'same     oddity/zeros: the same values in 1 of 1 cases, but different bits in 1 (0 and -0' 'added    rmsnorm/added' 'deleted  rmsnorm/gone'

# Nothing was stored.
run cache stats
expect_exit 0
expect_says 'verdicts   0'

# If the command line names definitions, only these are compared, and they determine the exit status.
run diff --device "$device" --sizes small HEAD same spaced
expect_exit 0
expect_says '2 definitions differ from'
run diff --device "$device" --sizes small HEAD raises
expect_exit 3
expect_says '1 definition differs from'

# With --format github, each difference that a reviewer must see is an annotation.
run diff --device "$device" --sizes small --format github HEAD wrong same
expect_exit 1
expect_says '::error file=definitions/rmsnorm/wrong.json,title=rmsnorm/wrong%3A changed::'

# `diff` compares with the merge base, and not with the tip of the other branch.
do_git checkout -q -b topic
do_git commit -q -a -m topic
do_git checkout -q main
edit definitions/rmsnorm/slow.json '+ 1e-6' '+ 1e-5'
do_git commit -q -a -m main
do_git checkout -q topic
run diff --device "$device" --sizes small --format json main spaced slow
expect_exit 0
expect_behaviours 'rmsnorm/spaced text'

# If the earlier version of a definition cannot run or is invalid, this definition is not compared. All other
# definitions are compared.
edit definitions/rmsnorm/broken.json 'def run' 'def run('
do_git commit -q -a -m broken
edit definitions/rmsnorm/broken.json 'def run(' 'def run'
edit definitions/rmsnorm/slow.json '+ 1e-6' '+ 1e-2'
run diff --device "$device" --sizes small --format json
expect_exit 1
expect_behaviours 'rmsnorm/broken unknown' 'rmsnorm/slow changed' 'rmsnorm/added added'

# `diff` is called with arguments that are not a commit, and then in a folder outside any repository.
run diff nowhere
expect_exit 2
expect_says "common ancestor of 'nowhere'"
rm -rf .git
run diff
expect_exit 2
