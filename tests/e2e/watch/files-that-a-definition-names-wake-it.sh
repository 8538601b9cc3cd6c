#!/bin/sh
# If a workload line changes, or if a blob that the line names changes, the watcher runs only the definition of this
# line. The watcher also notices that a folder of definitions is moved away and back, and watches a folder that is a
# symbolic link.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
watch
blob=$(ls blob/workloads/rmsnorm/tiny_norm/*.safetensors | head -n 1)
cp "$blob" "$work/blob"
printf '{"definition": "tiny_gemm", "workload": {"uuid": "9", "axes": {"M": 11}, "inputs": {"A": {"type": "random"}, "B": {"type": "random"}}}, "solution": null, "evaluation": null}\n' \
	>>workloads/gemm/tiny_gemm.jsonl
await_batch
expect_events "[(x['name'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 1)]"
rm "$blob"
await_batch
expect_events "[(x['name'], x['status'], x['reason']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'skipped', 'missing_blob')]"
cp "$work/blob" "$work/whole"
mv "$work/whole" "$blob" # replaces the blob in one step, however busy the machine is
await_batch
expect_events "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'passed', 0)]"
mv blob/workloads "$work/away"
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'skipped')]"
mv "$work/away" blob/workloads
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'passed')]"

mv definitions/gemm "$work/gemm"
await "e['event'] == 'gone' and e['name'] == 'gemm/tiny_gemm'"
await_batch
ln -s "$work/gemm" definitions/gemm
await_batch
expect_events "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 'passed', 0)]"
sed -i 's/"description": "/"description": "Linked. /' "$work/gemm/tiny_gemm.json"
await_batch
expect_events "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 'passed', 0)]"
end_watch
expect_nothing_to_do
