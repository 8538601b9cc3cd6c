#!/bin/sh
# 7130: where pytest files were generated, watch leaves them current after each save, each deletion and each deletion of one
# of them, as `generate` would have written them; a file that somebody edited is left alone and named once; where none were
# generated it makes none; and when `generate` runs beside it, it keeps from then on what came of that. Once it is quiet, what it
# saw is noted, so that whoever comes next need not make the classes again to know that they are current.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
current() { # as a cold `generate` says
	run generate --check
	expect_exit 0
}
norms=tests/references/test_rmsnorm.py gemms=tests/references/test_gemm.py
watch
edit definitions/rmsnorm/tiny_norm.json '\n    rows =' '\n    # one remark\n    rows ='
await_batch
heard "e['written'] == 0"
[ ! -e tests ] || fail "watch made files where none were generated"

watcher=$program
"$reftest" generate >/dev/null || fail "generate ended with $?"
edit definitions/rmsnorm/tiny_norm.json 'one remark' 'another remark'
await_batch
heard "e['passed'] == 1 and e['cases_run'] == 0"
heard "e['written'] >= 1" # it may have written some of the others, too, before `generate` came to them
grep -q 'another remark' "$norms" || fail "the batch is told, and the generated file holds the old text"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4' # it fails, and its test is to fail, too
await_batch
heard "e['failed'] == 1 and e['written'] == 1"
grep -q 'EPSILON = 1e-4' "$norms" || fail "the generated file of a definition that fails holds another text"
for _ in $(seq 600); do
	if grep -q ' test_rmsnorm.py$' .reftest/artifacts; then break; fi
	sleep 0.1
done
grep -q ' test_rmsnorm.py$' .reftest/artifacts || fail "what was made after a save was not noted: $(cat .reftest/artifacts)"
cp "$norms" "$work/before"
printf '{' >"$work/broken"
cp definitions/rmsnorm/tiny_norm.json "$work/failing"
mv "$work/broken" definitions/rmsnorm/tiny_norm.json
await_batch
heard "e['invalid'] == 1 and e['written'] == 0"
cmp -s "$norms" "$work/before" || fail "the class of a broken definition changed"
sed 's/EPSILON = 1e-4/EPSILON = 1e-6/' "$work/failing" >"$work/mended"
mv "$work/mended" definitions/rmsnorm/tiny_norm.json
await_batch
heard "e['passed'] == 1 and e['written'] == 1"

rm "$gemms" # nobody saved anything: it comes back all the same
for _ in $(seq 600); do
	[ -f "$gemms" ] && break
	sleep 0.1
done
[ -f "$gemms" ] || fail "a generated file that was deleted did not come back"
mv definitions/gemm/tiny_gemm.json "$work/"
await_batch
heard "e['gone'] == 1 and e['written'] == 2" # and the one that came back before
[ ! -e "$gemms" ] || fail "the generated file of a definition that is gone stayed"
mv "$work/tiny_gemm.json" definitions/gemm/
await_batch
heard "e['written'] == 1"

echo '# mine' >>"$gemms"
await "e['event'] == 'notice' and 'was edited since' in e['message']"
edit definitions/gemm/tiny_gemm.json 'import torch' '# a remark\nimport torch'
await_batch
heard "e['written'] == 0"
heard "not any(x['event'] == 'notice' for x in a)"
grep -q '# mine' "$gemms" || fail "a file that somebody edited was replaced"
rm "$gemms"
edit definitions/gemm/tiny_gemm.json '# a remark' '# the last remark'
await_batch
end_watch
current
