#!/bin/sh
# `affected` lists the definitions and tests that depend on the given files, or on the files that a branch changed.
# After these files change, `verify` runs exactly the listed definitions again.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
lists() { # lists LINE…: expects exactly these lines on standard output
	expectations=$((expectations + 1))
	printf '%s\n' "$@" >"$work/expected"
	[ "$#" -gt 0 ] || : >"$work/expected"
	cmp -s "$work/out" "$work/expected" || fail "$step: the lines differ from: $*"
}
given tiny_norm tiny_gemm rmsnorm_h128
run generate
expect_exit 0

# Each kind of file that affects a definition is tested.
run affected definitions/rmsnorm/tiny_norm.json
expect_exit 0
lists rmsnorm/tiny_norm tests/references/test_rmsnorm.py
run affected workloads/gemm/tiny_gemm.jsonl definitions/rmsnorm/tiny_norm.json --definitions
lists gemm/tiny_gemm rmsnorm/tiny_norm
run affected --tests blob/workloads/rmsnorm/tiny_norm/rows.safetensors
lists tests/references/test_rmsnorm.py
run affected --json blob/workloads/rmsnorm/tiny_norm/rows.safetensors README.md
expect "[(one['name'], one['because']) for one in r['definitions']] == [('tiny_norm', 'blob/workloads/rmsnorm/tiny_norm/rows.safetensors')]"
expect "r['untouched'] == ['README.md'] and r['gone'] == []"
# JSON may escape any letter of a path.
sed -i 's#tiny_norm/rows#tiny_norm/ro\\u0077s#g' workloads/rmsnorm/tiny_norm.jsonl
run affected --definitions blob/workloads/rmsnorm/tiny_norm/rows.safetensors
lists rmsnorm/tiny_norm
run affected tests/references/test_gemm.py
lists gemm/tiny_gemm tests/references/test_gemm.py
run affected tests/references/conftest.py
lists tests/references/conftest.py tests/references/test_gemm.py tests/references/test_rmsnorm.py
run affected tests/references/reftest_libraries/torch.py
lists tests/references/test_gemm.py tests/references/test_rmsnorm.py
run affected LICENSE
expect_exit 0
lists
run affected definitions/rmsnorm/never.json
lists tests/references/test_rmsnorm.py
expect_says 'definitions/rmsnorm/never.json was deleted'
run affected
expect_exit 2
# Paths are relative to the working directory.
cd definitions/rmsnorm
run affected --definitions tiny_norm.json ../gemm/./tiny_gemm.json "$root/workloads/rmsnorm/rmsnorm_h128.jsonl"
lists gemm/tiny_gemm rmsnorm/rmsnorm_h128 rmsnorm/tiny_norm
cd "$root"

# A kernel's source file affects definitions only if the root is a checkout of reftest.
run affected --definitions kernels/gemm/gemm.c
lists
run affected --definitions --root "$top" kernels/gemm/gemm.c
expectations=$((expectations + 1))
[ "$(grep -c . "$work/out")" -gt 1 ] && ! grep -qv '^gemm/' "$work/out" || fail "the list has other definitions than those of gemm"
run affected --definitions --root "$top" python/testing/conftest.py
lists
run affected --definitions --root "$top" kernels/core/compare_tensors.c
expectations=$((expectations + 1))
[ "$(grep -c . "$work/out")" = "$(find "$top/definitions" -name '*.json' | grep -c .)" ] || fail "not every definition"

# The changes on a branch may be committed, staged, or neither. Changes that were committed only to the base branch do
# not count.
do_git init -q -b main .
do_git add definitions workloads blob tests
do_git commit -qm first
run verify --changed --staged --device "$device" --sizes small
expect_exit 0
do_git checkout -q -b mine
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-3'
do_git commit -qam mine
do_git checkout -q main
edit definitions/rmsnorm/rmsnorm_h128.json '"description": "' '"description": "Theirs. '
do_git commit -qam theirs
do_git checkout -q mine
run affected --since main --definitions
expect_exit 0
lists rmsnorm/tiny_norm
edit workloads/gemm/tiny_gemm.jsonl '{"M": 5}' '{"M": 6}'
run affected --since main --definitions
lists gemm/tiny_gemm rmsnorm/tiny_norm
verify --dry-run
expect "sorted(name for name, one in d.items() if one['status'] != 'passed') == ['tiny_gemm', 'tiny_norm']"
# An untracked file counts as a changed file, unless git ignores it.
sed 's/"tiny_norm"/"new norm"/' definitions/rmsnorm/tiny_norm.json >'definitions/rmsnorm/new norm.json'
cp 'definitions/rmsnorm/new norm.json' definitions/rmsnorm/scratch.json
echo scratch.json >.git/info/exclude
mkdir -p workloads/rmsnorm
cp workloads/rmsnorm/tiny_norm.jsonl workloads/rmsnorm/rmsnorm_h128.jsonl
run affected --since main --definitions
lists gemm/tiny_gemm 'rmsnorm/new norm' rmsnorm/rmsnorm_h128 rmsnorm/tiny_norm
do_git add -N 'definitions/rmsnorm/new norm.json'
run affected --since main --definitions
lists gemm/tiny_gemm 'rmsnorm/new norm' rmsnorm/rmsnorm_h128 rmsnorm/tiny_norm
do_git reset -q
rm 'definitions/rmsnorm/new norm.json' definitions/rmsnorm/scratch.json workloads/rmsnorm/rmsnorm_h128.jsonl
# A dataset may also be in a folder of a repository, and the folder may have any name. Changed files outside this folder
# do not count.
mkdir -p '../whole/data[1] set' ../whole/data1
cp -r definitions workloads blob '../whole/data[1] set/'
cd ../whole
do_git init -q -b main .
do_git add .
do_git commit -qm first
cp 'data[1] set/definitions/rmsnorm/tiny_norm.json' 'data[1] set/definitions/rmsnorm/new_norm.json'
echo 1 >data1/note
run affected --since HEAD --json --root 'data[1] set'
expect "[one['name'] for one in r['definitions']] == ['new_norm'] and r['untouched'] == []"
cd "$root"
do_git mv definitions/gemm/tiny_gemm.json definitions/gemm/other.json
run affected --since main --json
expect "r['gone'] == ['definitions/gemm/tiny_gemm.json'] and 'other' in [one['name'] for one in r['definitions']]"
run affected --since nowhere
expect_exit 2
expect_says 'fetch-depth: 0'
run affected --since --upload-pack=x
expect_exit 2
