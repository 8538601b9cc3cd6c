#!/bin/sh
# On a real FUSE filesystem, files can also be changed directly in the underlying folder. watch reports that it polls,
# and verifies such changes. While the filesystem is unmounted, watch waits, and then it continues.
. "$(dirname "$0")/../harness.sh"
command -v bindfs >/dev/null 2>&1 || skip "there is no bindfs here"
[ -c /dev/fuse ] || skip "there is no /dev/fuse here"
given tiny_norm tiny_gemm
mounted=$work/mounted
mkdir "$mounted"
mount_it() { bindfs "$root" "$mounted" 2>"$work/err" || skip "bindfs cannot mount here: $(cat "$work/err")"; }
unmount() { umount -l "$mounted" 2>/dev/null || fusermount -u -z "$mounted"; }
mount_it
trap 'code=$?; unmount 2>/dev/null || true; test_end $code' EXIT
cd "$work" # leaves the mount, so that no process has its working directory there
watch --root "$mounted"
expect_says 'whose changes inotify does not report'
file=$root/definitions/rmsnorm/tiny_norm.json
edit "$file" 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict'"
expect_events "e['name'] == 'tiny_norm' and e['status'] == 'failed'"
edit "$mounted/definitions/rmsnorm/tiny_norm.json" 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict'"
expect_events "e['name'] == 'tiny_norm' and e['status'] == 'passed'"
rm "$root/workloads/rmsnorm/tiny_norm.jsonl" # the mount caches for a second that the file exists
await "e['event'] == 'verdict'"
expect_events "e['name'] == 'tiny_norm' and e['status'] == 'passed' and e['cases_cached'] == 2"
rm "$root/definitions/gemm/tiny_gemm.json"
await "e['event'] == 'gone' and e['name'] == 'gemm/tiny_gemm'"

unmount
await "e['event'] == 'notice' and 'no longer exists' in e['message']"
edit "$file" 'EPSILON = 1e-6' 'EPSILON = 1e-4'
mount_it
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
expect_events "e['failed'] == 1 and e['passed'] == 0"
edit "$file" 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'passed'"
end_watch
unmount
cd "$root"
expect_nothing_to_do
