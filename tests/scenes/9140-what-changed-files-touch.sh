#!/bin/sh
# 9140: `affected` lists the definitions and tests that files touch, by whatever way they do, and since where a branch began;
# and that is exactly what `verify` then looks at anew.
. "$(dirname "$0")/scene.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null
git config --file "$GIT_CONFIG_GLOBAL" user.name scene
git config --file "$GIT_CONFIG_GLOBAL" user.email scene@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
lists() { # lists LINE…: exactly these lines on standard output
	expectations=$((expectations + 1))
	printf '%s\n' "$@" >"$work/expected"
	[ "$#" -gt 0 ] || : >"$work/expected"
	cmp -s "$work/out" "$work/expected" || fail "$step: other lines than: $*"
}
given tiny_norm tiny_gemm rmsnorm_h128
run generate
expect_exit 0

# each way to touch a definition
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
# a workload may write any letter of a path otherwise
sed -i 's#tiny_norm/rows#tiny_norm/ro\\u0077s#g' workloads/rmsnorm/tiny_norm.jsonl
run affected --definitions blob/workloads/rmsnorm/tiny_norm/rows.safetensors
lists rmsnorm/tiny_norm
run affected tests/references/test_gemm.py
lists gemm/tiny_gemm tests/references/test_gemm.py
run affected tests/references/conftest.py
lists tests/references/conftest.py tests/references/test_gemm.py tests/references/test_rmsnorm.py
run affected LICENSE
expect_exit 0
lists
run affected definitions/rmsnorm/never.json
lists tests/references/test_rmsnorm.py
expect_says 'definitions/rmsnorm/never.json is gone'
run affected
expect_exit 2
# named from where one stands
cd definitions/rmsnorm
run affected --definitions tiny_norm.json ../gemm/./tiny_gemm.json "$root/workloads/rmsnorm/rmsnorm_h128.jsonl"
lists gemm/tiny_gemm rmsnorm/rmsnorm_h128 rmsnorm/tiny_norm
cd "$root"

# sources count in reftest's own checkout, and only there
run affected --definitions kernels/gemm/gemm.c
lists
run affected --definitions --root "$top" kernels/gemm/gemm.c
expectations=$((expectations + 1))
[ "$(grep -c . "$work/out")" -gt 1 ] && ! grep -qv '^gemm/' "$work/out" || fail "not the definitions of gemm alone"
run affected --definitions --root "$top" kernels/gemm/template.py
lists
run affected --definitions --root "$top" kernels/compare.c
expectations=$((expectations + 1))
[ "$(grep -c . "$work/out")" = "$(find "$top/definitions" -name '*.json' | grep -c .)" ] || fail "not every definition"

# since a branch began: committed, staged, or neither; what the other branch did meanwhile is not ours
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
# what git was not told of yet, as long as it is not told to ignore it
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
# the same of a dataset in a folder of a repository, whatever its name; what lies beside it is none of its files
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
