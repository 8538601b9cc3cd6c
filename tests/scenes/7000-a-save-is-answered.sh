#!/bin/sh
# 7000: watch answers each save: a mistake fails, taking it back costs no run, a comment costs none, a new definition is
# verified, a renamed one costs no run, a deleted one is gone; and what watch left behind is what verify finds.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
watch
heard "e['definitions'] == 2 and e['passed'] == 2"

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict'"
heard "e['name'] == 'tiny_norm' and e['status'] == 'failed' and e['reason'] == 'numeric' and e['cases_run'] > 0"
heard "len(e['cases'][0]['outputs'][0]['worst']) == 5"
await_batch
heard "e['failed'] == 1 and e['passed'] == 0"

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict'"
heard "e['status'] == 'passed' and e['cases_run'] == 0 and e['cases_cached'] > 0"
await_batch

edit definitions/rmsnorm/tiny_norm.json '\n    rows =' '\n    # rows in float32\n    rows ='
await "e['event'] == 'verdict'"
heard "e['status'] == 'passed' and e['cases_run'] == 0"
await_batch

: >definitions/rmsnorm/notes.txt
cp definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/.tiny_norm.json.swp
sed 's/tiny_gemm/other_gemm/' definitions/gemm/tiny_gemm.json >other_gemm.json
mv other_gemm.json definitions/gemm/other_gemm.json
await "e['event'] == 'verdict'"
heard "e['name'] == 'other_gemm' and e['status'] == 'passed' and e['cases_run'] == 0" # it is tiny_gemm under another name
await_batch

sed -i 's/other_gemm/third_gemm/' definitions/gemm/other_gemm.json
await_batch
heard "any(x['event'] == 'verdict' and x['status'] == 'invalid' for x in a)" # name and file name disagree
mv definitions/gemm/other_gemm.json definitions/gemm/third_gemm.json
await "e['event'] == 'gone' and e['name'] == 'gemm/other_gemm'"
heard "any(x['event'] == 'verdict' and x['name'] == 'third_gemm' and x['status'] == 'passed' for x in a)"
await_batch

rm definitions/gemm/third_gemm.json
await "e['event'] == 'gone' and e['name'] == 'gemm/third_gemm'"
await_batch
heard "e['gone'] == 1 and e['cases_run'] == 0"
end_watch
expect_nothing_to_do
