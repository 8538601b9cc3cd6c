#!/bin/sh
# A checkout of FlashInfer, from repos_config.json or --repos, counts as an installed library. The checkout's commit is
# part of the ground truth's version, so a verdict is not valid for another commit. A checkout that differs from its
# commit is not used.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the tables of this test are for a CPU"
given tiny_gemm
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }

# Creates a library that only the checkout has, and a provider table that calls it.
export REFTEST_PROVIDERS="$work/tables"
mkdir "$REFTEST_PROVIDERS"
cat >"$REFTEST_PROVIDERS/flashinfer.py" <<'P'
from reftest_providers import Need, Row, Table

def gemm(call):
    import flashinfer

    return call.outputs_of(output=flashinfer.product(call["a"], call["b"]))

TABLES = (Table("flashinfer", (Need(("reftest-no-such-library",), "flashinfer", (0, 3)),), {"gemm": Row(gemm, cpu=True, first_use_s=0)}),)
P
for name in sglang fla torch; do echo "TABLES = ()" >"$REFTEST_PROVIDERS/$name.py"; done
do_git init -q --bare "$work/mirror/flashinfer.git"
do_git init -q "$work/flashinfer"
mkdir "$work/flashinfer/flashinfer"
cat >"$work/flashinfer/flashinfer/__init__.py" <<'P'
def product(a, b):
    return a.double() @ b.double().t()
P
push() {
	do_git -C "$work/flashinfer" add -A
	do_git -C "$work/flashinfer" commit -q -m "$1"
	do_git -C "$work/flashinfer" push -q "$work/mirror/flashinfer.git" main
}
push first
checks() { verify --ground-truth flashinfer,builtin "$@"; }

# Without a checkout the library is missing.
checks
expect_exit 0
expect "all_of('tiny_gemm', 'ground_truth') == ['builtin'] * len(d['tiny_gemm']['cases'])"
expect "all('not installed' in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases'])"

# With a checkout, the library is the ground truth, and the ground truth's version contains the commit.
run clone --mirror "$work/mirror" --only flashinfer
expect_exit 0
commit=$(git -C repos/flashinfer rev-parse HEAD)
checks
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'flashinfer'}"
expect "all('commit $commit' in version for version in all_of('tiny_gemm', 'ground_truth_version'))"
[ -z "$(git -C repos/flashinfer status --porcelain --ignored)" ] || fail "importing the checkout changed it"
checks
expect_ran 0

# With another commit of the checkout, the ground truth has another version, so the cases run again.
echo "# next" >>"$work/flashinfer/flashinfer/__init__.py"
push next
run clone --mirror "$work/mirror" --only flashinfer
expect_exit 0
checks
expect "s['cases_run'] > 0 and set(all_of('tiny_gemm', 'ground_truth')) == {'flashinfer'}"
expect "all('$commit' not in version for version in all_of('tiny_gemm', 'ground_truth_version'))"

# A checkout with local changes is not used, because its commit does not identify its code.
echo "# mine" >>repos/flashinfer/flashinfer/__init__.py
checks --force
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"
expect "all('has uncommitted changes' in case['witnesses'][0]['passed_over'] for case in d['tiny_gemm']['cases'])"
do_git -C repos/flashinfer checkout -q -- .

# --repos names another folder.
mv repos elsewhere
rm repos_config.json
checks
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"
run watch --once --json --device cpu --sizes small --ground-truth flashinfer,builtin --repos elsewhere
expect_exit 0
checks --repos elsewhere
expect_ran 0 # by the watcher
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'flashinfer'}"
run warm --device cpu --ground-truth flashinfer --repos elsewhere
expect_exit 0
grep -Eq '^  flashinfer +[0-9.]+ s prepared$' "$work/out" || fail "warm does not use the checkout"
for command in "watch --once" warm verify; do
	# shellcheck disable=SC2086 # a list of words
	run $command --repos definitions --device cpu
	expect_exit 2
	grep -q 'no checkout of sglang or flashinfer' "$work/err" || fail "the missing checkout is not reported"
done
checks --repos definitions
expect_exit 2
grep -q 'no checkout of sglang or flashinfer' "$work/err" || fail "the missing checkout is not reported"

# A damaged repos_config.json is reported with the position of the error.
echo '{"target_dir": "x", "repositories": {"flashinfer": {"path": 1}}}' >repos_config.json
checks
expect_exit 2
grep -q 'repos_config.json:1:[0-9]*: expected a string' "$work/err" || fail "the damage is not reported"
