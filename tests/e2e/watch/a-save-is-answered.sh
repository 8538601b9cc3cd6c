#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# watch verifies each save. It reports a mistake as failed, verifies a new definition and reports a deleted one. It runs
# no case if a mistake is undone, a comment is edited or a definition is renamed. Afterwards verify uses the verdicts
# that watch stored.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
watch
expect_events "e['definitions'] == 2 and e['passed'] == 2"

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict'"
expect_events "e['name'] == 'tiny_norm' and e['status'] == 'failed' and e['reason'] == 'numeric' and e['cases_run'] > 0"
expect_events "len(e['cases'][0]['outputs'][0]['worst']) == 5"
await_batch
expect_events "e['failed'] == 1 and e['passed'] == 0"

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'passed' and e['cases_run'] == 0 and e['cases_cached'] > 0"
await_batch

edit definitions/rmsnorm/tiny_norm.json '\n    rows =' '\n    # rows in float32\n    rows ='
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'passed' and e['cases_run'] == 0"
await_batch

: >definitions/rmsnorm/notes.txt
cp definitions/rmsnorm/tiny_norm.json definitions/rmsnorm/.tiny_norm.json.swp
sed 's/tiny_gemm/other_gemm/' definitions/gemm/tiny_gemm.json >other_gemm.json
mv other_gemm.json definitions/gemm/other_gemm.json
await "e['event'] == 'verdict'"
# other_gemm equals tiny_gemm except for its name.
expect_events "e['name'] == 'other_gemm' and e['status'] == 'passed' and e['cases_run'] == 0"
await_batch

sed -i 's/other_gemm/third_gemm/' definitions/gemm/other_gemm.json
await_batch
# The definition's name differs from the file's name.
expect_events "any(x['event'] == 'verdict' and x['status'] == 'invalid' for x in a)"
mv definitions/gemm/other_gemm.json definitions/gemm/third_gemm.json
await "e['event'] == 'gone' and e['name'] == 'gemm/other_gemm'"
expect_events "any(x['event'] == 'verdict' and x['name'] == 'third_gemm' and x['status'] == 'passed' for x in a)"
await_batch

rm definitions/gemm/third_gemm.json
await "e['event'] == 'gone' and e['name'] == 'gemm/third_gemm'"
await_batch
expect_events "e['gone'] == 1 and e['cases_run'] == 0"
end_watch
expect_nothing_to_do
