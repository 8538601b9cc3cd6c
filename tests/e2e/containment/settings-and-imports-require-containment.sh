#!/bin/sh
# own interpreter: the test checks what a reference can access.
# In every command, the setting require-containment of reftest.toml has the effect of the option --require-containment.
# An import with a key accepts only verdicts of fully contained references, unless an option allows others.
. "$(dirname "$0")/../harness.sh"
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
given tiny_gemm

# `weak ARGUMENT…`: runs reftest without the layers of the sandbox that hide the user's files from references.
weak() {
	step="restricted reftest $*"
	status=0
	"$work/restrict" --no-namespaces --no-landlock "$reftest" "$@" >"$work/out" 2>"$work/err" || status=$?
}
require() { echo "require-containment = $1" >reftest.toml; }

weak verify --alone --format json --device "$device" --sizes small
expect_exit 0
weak verify --alone --format json --device "$device" --sizes small --changed
expect_ran 0
REFTEST_CACHE_KEY=$("$reftest" key)
export REFTEST_CACHE_KEY
run cache export "$work/weak.zst"

# No command accepts the stored verdicts any more. No reference runs on a machine where references can read files.
require '["files", "network"]'
run status
expect_silence_about ' 1 passed'
weak verify --alone --device "$device" --sizes small
expect_exit 3
expect_says 'no reference runs, because this machine does not meet --require-containment files,network'
verify --require-containment none # the option replaces the setting
expect_exit 0
expect_ran 0
verify --require-containment network
expect_ran 0
verify
expect_exit 0
expect_cached 0
expect "'files' not in s['containment']"
expect_nothing_to_do
run cache export "$work/strong.zst"
require '"full"'
verify
expect_exit 0
expect "s['containment'] in ('full', None) or s['cases_run'] == 0"

# The settings are checked. If a setting is wrong, nothing runs.
for wrong in 'require-containment = "everything"' 'require-contanment = "full"' 'ground-truth = "torch"'; do
	echo "$wrong" >reftest.toml
	verify
	expect_exit 2
	expect_says 'reftest.toml:1:'
	run cache import "$work/strong.zst"
	expect_exit 2
done
rm reftest.toml
echo '{"require_containment": "full"}' >reftest.json # read for one more version
run status
expect_exit 3
expect_says 'reftest.json sets require-containment = full' 'later versions of reftest will not read reftest.json' 'require-containment = "full"'
echo 'device = "cpu"' >reftest.toml
run status
expect_exit 2
expect_says 'delete reftest.json'
rm reftest.json
require '[]'
verify
expect_exit 0
rm reftest.toml

# From here on, verdicts are imported with a key.
forget_cache() { rm -rf .reftest; }
forget_cache
run cache import "$work/weak.zst"
expect_exit 1
expect_says ' 0 verdicts imported' 'the reference could reach ' '--require-containment none accepts such verdicts'
run cache import --require-containment none "$work/weak.zst"
expect_exit 0
forget_cache
run cache import --require-containment network "$work/weak.zst"
expect_exit 0
forget_cache
require '["network"]' # a dataset cannot ask for less than full
run cache import "$work/weak.zst"
expect_exit 1
rm reftest.toml
forget_cache
unset REFTEST_CACHE_KEY
run cache import "$work/weak.zst"
expect_exit 0
forget_cache
require '["files"]'
run cache import "$work/weak.zst"
expect_exit 1
rm reftest.toml
