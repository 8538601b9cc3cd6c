#!/bin/sh
# If there are generated pytest files, watch updates them as `generate` would: after each save, after each deletion of a
# definition, and after each deletion of a generated file. A file that a user edited is left unchanged and reported
# once. If there are no generated files, watch writes none. If `generate` writes the files at the same time, watch
# continues with the files that `generate` has written. When watch is idle, it records the state of the generated files.
# The next command learns from this record that the files are current, so it need not build their test classes again.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
current() { # current: prints the report of `generate` without records
	run generate --check
	expect_exit 0
}
norms=tests/references/test_rmsnorm.py gemms=tests/references/test_gemm.py
watch
edit definitions/rmsnorm/tiny_norm.json '\n    rows =' '\n    # one remark\n    rows ='
await_batch
expect_events "e['written'] == 0"
[ ! -e tests ] || fail "watch wrote files although none had been generated"

watcher=$program
"$reftest" generate >/dev/null || fail "generate exited with $?"
edit definitions/rmsnorm/tiny_norm.json 'one remark' 'another remark'
await_batch
expect_events "e['passed'] == 1 and e['cases_run'] == 0"
expect_events "e['written'] >= 1" # the watcher may have written some of the files before `generate` did
grep -q 'another remark' "$norms" || fail "the batch is complete, and the generated file has the old text"
# The definition fails, and its generated test must also fail.
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await_batch
expect_events "e['failed'] == 1 and e['written'] == 1"
grep -q 'EPSILON = 1e-4' "$norms" || fail "the generated file of a failing definition has another text"
for _ in $(seq 600); do
	if grep -q ' test_rmsnorm.py$' .reftest/artifacts; then break; fi
	sleep 0.1
done
grep -q ' test_rmsnorm.py$' .reftest/artifacts || fail "the update after a save was not recorded: $(cat .reftest/artifacts)"
cp "$norms" "$work/before"
printf '{' >"$work/broken"
cp definitions/rmsnorm/tiny_norm.json "$work/failing"
mv "$work/broken" definitions/rmsnorm/tiny_norm.json
await_batch
expect_events "e['invalid'] == 1 and e['written'] == 0"
cmp -s "$norms" "$work/before" || fail "the class of a broken definition changed"
sed 's/EPSILON = 1e-4/EPSILON = 1e-6/' "$work/failing" >"$work/mended"
mv "$work/mended" definitions/rmsnorm/tiny_norm.json
await_batch
expect_events "e['passed'] == 1 and e['written'] == 1"
expect_events "not any(x['event'] == 'notice' for x in a)" # the batch has the number of written files; no notice says more

rm "$gemms" # A deleted generated file is restored without any save.
for _ in $(seq 600); do
	[ -f "$gemms" ] && break
	sleep 0.1
done
[ -f "$gemms" ] || fail "a deleted generated file was not restored"
mv definitions/gemm/tiny_gemm.json "$work/"
await_batch
expect_events "e['gone'] == 1 and e['written'] == 2" # including the file that was restored before
[ ! -e "$gemms" ] || fail "the generated file of a deleted definition was not removed"
mv "$work/tiny_gemm.json" definitions/gemm/
await_batch
expect_events "e['written'] == 1"

echo '# mine' >>"$gemms"
await "e['event'] == 'notice' and 'has been edited since' in e['message']"
edit definitions/gemm/tiny_gemm.json 'import torch' '# a remark\nimport torch'
await_batch
expect_events "e['written'] == 0"
expect_events "not any(x['event'] == 'notice' for x in a)"
grep -q '# mine' "$gemms" || fail "an edited file was replaced"
rm "$gemms"
edit definitions/gemm/tiny_gemm.json '# a remark' '# the last remark'
await_batch
end_watch
current
