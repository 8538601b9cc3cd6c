#!/bin/sh
# The watcher notices a change of a blob even if a workload writes the blob's path in an unusual way, or if the blob is
# among the definitions or outside blob/. The watcher never reports a definition as verified before it has checked the
# definition.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
rows=blob/workloads/rmsnorm/tiny_norm/rows.safetensors
deep=blob/1/2/3/4/5/6/7/8/9/10
mkdir -p data $deep
cp $rows data/rows.safetensors
cp $rows $deep/rows.safetensors
cp workloads/rmsnorm/tiny_norm.jsonl "$work/lines"
watch
expect_events "e['passed'] == 1"
for path in ./blob//workloads/./rmsnorm/tiny_norm/rows.safetensors ./data/rows.safetensors $deep/rows.safetensors; do
	sed "s|[^\"]*rows.safetensors|$path|" "$work/lines" >"$work/named"
	mv "$work/named" workloads/rmsnorm/tiny_norm.jsonl
	await_batch
	expect_events "[(x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('passed', 0)]"
	mv "$path" "$work/away"
	await_batch
	expect_events "[(x['status'], x['reason']) for x in a if x['event'] == 'verdict'] == [('skipped', 'missing_blob')]"
	mv "$work/away" "$path"
	await_batch
	expect_events "[(x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('passed', 0)]"
	step="asked after $path was emptied"
	cp "$path" "$work/whole"
	: >"$path"
	REFTEST_TRACE=1 "$reftest" verify --changed --sizes small --device "$device" >"$work/answer" 2>"$work/trace" && status=0 || status=$?
	expect_exit 2
	grep -q 'the watcher reports 0 definitions as verified' "$work/trace" || fail "$step: $(cat "$work/answer" "$work/trace")"
	await_batch
	mv "$work/whole" "$path"
	await_batch
	expect_events "[(x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('passed', 0)]"
done
end_watch
watch # from here on the watcher reports every definition from its summary, without reading it again
rm "$path"
await_batch
expect_events "[(x['status'], x['reason']) for x in a if x['event'] == 'verdict'] == [('skipped', 'missing_blob')]"
end_watch
