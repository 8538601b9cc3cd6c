#!/bin/sh
# A change of reftest.toml takes effect in a running watch at the next save, and a message says so. Invalid settings are
# reported once and have no effect.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.1 * torch.matmul'
watch
expect_events "any(x['event'] == 'verdict' and x['status'] == 'failed' for x in a)"

echo 'tolerance = ["float16=what"]' >reftest.toml
edit definitions/gemm/tiny_gemm.json '1.1 *' '1.101 *'
await "e['event'] == 'notice'"
expect_events "'reftest.toml:1:1' in e['message'] and 'the earlier settings stay in effect' in e['message']"
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'failed'"
await_batch

echo 'tolerance = ["float16=0.5,0.5"]' >reftest.toml
edit definitions/gemm/tiny_gemm.json '1.101 *' '1.102 *'
await "e['event'] == 'notice'"
expect_events "e['message'] == 'reftest.toml has changed: restarting with the new settings'"
await "e['event'] == 'ready'"
expect_events "any(x['event'] == 'verdict' and x['status'] == 'passed' for x in a)"

# The file is written in place with a text of the same length, and its mtime is set back.
time=$(stat -c %y reftest.toml)
echo 'tolerance = ["float16=0.4,0.4"]' >reftest.toml
touch -d "$time" reftest.toml
edit definitions/gemm/tiny_gemm.json '1.102 *' '1.103 *'
await "e['event'] == 'notice'"
expect_events "e['message'] == 'reftest.toml has changed: restarting with the new settings'"
await "e['event'] == 'ready'"
rm reftest.toml
edit definitions/gemm/tiny_gemm.json '1.103 *' '1.1 *'
await "e['event'] == 'ready'"
expect_events "any(x['event'] == 'verdict' and x['status'] == 'failed' for x in a)"
kill -INT "$program"
ended
