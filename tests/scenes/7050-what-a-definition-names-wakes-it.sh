#!/bin/sh
# 7050: a workload line, and a blob that one names, wake the definition that they belong to and no other; a folder of
# definitions that is renamed away and back, and one behind a link, are followed.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
watch
blob=$(ls blob/workloads/rmsnorm/tiny_norm/*.safetensors | head -n 1)
cp "$blob" "$work/blob"
printf '{"definition": "tiny_gemm", "workload": {"uuid": "9", "axes": {"M": 11}, "inputs": {"A": {"type": "random"}, "B": {"type": "random"}}}, "solution": null, "evaluation": null}\n' \
	>>workloads/gemm/tiny_gemm.jsonl
await_batch
heard "[(x['name'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 1)]"
rm "$blob"
await_batch
heard "[(x['name'], x['status'], x['reason']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'skipped', 'missing_blob')]"
cp "$work/blob" "$work/whole"
mv "$work/whole" "$blob" # in one step, however busy the machine
await_batch
heard "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'passed', 0)]"
mv blob/workloads "$work/away"
await_batch
heard "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'skipped')]"
mv "$work/away" blob/workloads
await_batch
heard "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('tiny_norm', 'passed')]"

mv definitions/gemm "$work/gemm"
await "e['event'] == 'gone' and e['name'] == 'gemm/tiny_gemm'"
await_batch
ln -s "$work/gemm" definitions/gemm
await_batch
heard "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 'passed', 0)]"
sed -i 's/"description": "/"description": "Linked. /' "$work/gemm/tiny_gemm.json"
await_batch
heard "[(x['name'], x['status'], x['cases_run']) for x in a if x['event'] == 'verdict'] == [('tiny_gemm', 'passed', 0)]"
end_watch
expect_nothing_to_do
