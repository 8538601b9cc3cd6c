#!/bin/sh
# own interpreter: the test runs everything from the start, as a user does.
# The whole workflow works with local repositories: clone a dataset, extract the definitions of four models, verify,
# generate tests, run the tests, write a model into the file of the web interface, and measure times.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
for name in sglang flashinfer flashinfer-trace; do
	do_git init -q --bare "$work/mirror/$name.git"
	do_git init -q "$work/$name"
	mkdir "$work/$name/definitions"
	echo "of $name" >"$work/$name/definitions/README"
	do_git -C "$work/$name" add -A
	do_git -C "$work/$name" commit -q -m first
	do_git -C "$work/$name" push -q "$work/mirror/$name.git" main
done

step="clone"
run clone --mirror "$work/mirror"
expect_exit 0
cd repos/flashinfer-trace

step="extract"
for model in llama-3.1-8b deepseek-v3 qwen3-30b-a3b; do
	run extract --no-verify --model $model --format json
	expect_exit 0
	expect "len(r['written']) >= 10 and r['conflicts'] == []"
done
run extract --model gemma-3-27b --op-type gemma_rmsnorm --device cpu --format json
expect_exit 0
expect "r['verified'] and 'gemma_rmsnorm/gemma_rmsnorm_h5376' in r['written'] and r['not_kept'] == []"
run check --format json
expect_exit 0

step="verify"
verify rmsnorm_h2048 rmsnorm_h128 gemma_rmsnorm_h5376
expect_exit 0
expect "all(one['status'] == 'passed' for one in d.values()) and len(d) == 3"
expect "all(c['cached'] for c in d['gemma_rmsnorm_h5376']['cases'])" # extract verified it

step="generate and pytest"
run generate
expect_exit 0
run_pytest -k "TestRmsnormH128 and small and (numerical or builtin)"
expect_exit 0
run extract --stats --format json --device cpu
expect_exit 0
expect "r['stats']['without_test'] == 0 and r['stats']['definitions'] > 40"
expect "sorted(one['model'] for one in r['stats']['models']) == ['deepseek-v3', 'gemma-3-27b', 'llama-3.1-8b', 'qwen3-30b-a3b']"

step="web"
printf 'const models: Model[] = [\n]\n' >models.ts
for model in llama-3.1-8b deepseek-v3 qwen3-30b-a3b gemma-3-27b; do
	run web --model $model --into models.ts
	expect_exit 0
	[ ! -s "$work/err" ] || fail "a definition of $model is in no module"
done
[ "$(grep -c '^    id: ' models.ts)" = 4 ] || fail "models.ts has not four models"
grep -q '^        definitions: \["fused_add_rmsnorm_h2048", "rmsnorm_h2048"\],$' models.ts || fail "a definition is missing"

step="bench"
run bench rmsnorm_h128 --sizes small --device cpu --format json
expect_exit 0
expect "{one['name'] for c in r['definitions'][0]['cases'] for one in c['latencies']} == {'reference', 'builtin'}"
