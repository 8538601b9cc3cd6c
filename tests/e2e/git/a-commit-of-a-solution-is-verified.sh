#!/bin/sh
# If solutions are ground truths, the hook verifies the definition of a solution that the commit adds or removes. With
# --staged, the solutions come from git's index. A commit that changes reftest.toml affects every definition.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
staged() { run verify --staged --sizes small --device "$device" "$@"; }
code='import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return y.to(torch.bfloat16)'
echo "$code" | define norm
echo "$code" | define other
for name in norm other; do
	echo "$code" | sed 's,x.pow(2),(x * x),' | define_solution bob $name right
done
do_git init -q -b main .
do_git add definitions solutions
do_git commit -qm first
staged --ground-truth solution
expect_exit 0
expect_says '2 definitions: 2 passed'

# The solution of the first author in the order of the alphabet is the ground truth.
echo "$code" | sed 's/1e-6/1e-1/' | define_solution ada norm wrong
staged --hook --ground-truth solution
expect_exit 0
do_git add solutions
staged --hook --ground-truth solution
expect_exit 1
expect_says 'FAILED   rmsnorm/norm' '1 definition: 1 failed'
staged --ground-truth solution solutions/ada/rmsnorm/norm/wrong.json
expect_exit 1
expect_says '1 definition: 1 failed'
run affected --definitions solutions/ada/rmsnorm/norm/wrong.json solutions/ada/rmsnorm/none/wrong.json
expect_exit 0
expect_says 'rmsnorm/norm'
rm -r solutions/ada # the commit has the solution all the same
staged --force --ground-truth solution
expect_exit 1
expect_says '2 definitions: 1 passed, 1 failed'
do_git add solutions
mkdir -p "$work/linked"
ln -s "$work/linked" solutions/ada
do_git add solutions
staged --ground-truth solution norm
expect_exit 2
expect_says "solutions/ada: git's index has a symbolic link at this path"
rm solutions/ada
do_git add solutions

# A commit that removes a solution may leave a definition without a ground truth. (No cache says that it had one.)
rm -r .reftest solutions/bob/rmsnorm/other
do_git add solutions
staged --hook --ground-truth solution
expect_exit 0
expect_says 'NOT VERIFIED: 1 definition that this commit changes could not be verified'
do_git reset -q --hard

echo 'ground-truth = "auto,solution"' >reftest.toml
do_git add reftest.toml
run affected --definitions reftest.toml
expect_says 'rmsnorm/norm' 'rmsnorm/other'
staged --hook
expect_exit 0
expect_says '2 definitions: 2 passed'
