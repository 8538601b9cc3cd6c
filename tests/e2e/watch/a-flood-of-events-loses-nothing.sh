#!/bin/sh
# If more events arrive than the kernel can queue, the watcher checks all files again by content and runs only the
# changed definitions. The watcher then also watches a new folder whose creation event was lost.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
watch
kill -STOP "$program" # stops the watcher, so that it cannot read the events
"$python" -I -S - <<'END'
import os
most = int(open("/proc/sys/fs/inotify/max_queued_events").read())
for i in range(most // 4 + 1000): # alternates between two names, because the kernel merges equal events
    for name in ("a", "b"):
        with open(f"definitions/gemm/{name}.json", "w") as out:
            out.write("{}")
for name in ("a", "b"):
    os.unlink(f"definitions/gemm/{name}.json")
END
mkdir definitions/late
sed 's/"op_type": "gemm"/"op_type": "late"/; s/tiny_gemm/late_gemm/' definitions/gemm/tiny_gemm.json >definitions/late/late_gemm.json
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
kill -CONT "$program"
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'failed'"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'passed'"
await_batch
edit definitions/late/late_gemm.json '"name": "late_gemm"' '"name": "later_gemm"'
await "e['event'] == 'verdict' and e['name'] == 'late_gemm' and e['status'] == 'invalid'"
rm -r definitions/late
await "e['event'] == 'gone' and e['name'] == 'late/late_gemm'"
await_batch
end_watch
expect_nothing_to_do
