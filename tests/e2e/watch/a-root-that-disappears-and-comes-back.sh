#!/bin/sh
# own interpreter: the folder in which interpreters start disappears.
# The root is moved away and back, and then deleted and created again. watch reports this, waits, and continues with the
# new content.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
cp -r "$root" "$work/copy"
cd "$work"
watch --root "$root"
mv "$root" "$work/elsewhere"
await "e['event'] == 'notice' and 'no longer exists' in e['message']"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' "$work/elsewhere/definitions/rmsnorm/tiny_norm.json"
mv "$work/elsewhere" "$root"
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
expect_events "e['passed'] == 1 and e['failed'] == 1"
rm -rf "$root"
await "e['event'] == 'notice' and 'no longer exists' in e['message']"
cp -r "$work/copy" "$work/new"
mv "$work/new" "$root"
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
# The new root has a new cache. The watcher may check the new files in two batches. In this case the test may see only
# the second batch, which runs no case.
expect_events "e['passed'] == 2 and sum(x['cases_run'] for x in a if x['event'] == 'verdict') > 0"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' "$root/definitions/rmsnorm/tiny_norm.json"
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'failed'"
end_watch
cd "$root"
verify --changed
expect_exit 1
expect_ran 0

# Now watch gets the path "." as the root. After the deletion, "." still refers to the deleted folder.
watch
mkdir "$work/inner"
cp -r definitions workloads blob "$work/inner/"
rm -rf "$root"
await "e['event'] == 'notice' and 'no longer exists' in e['message']"
mv "$work/inner" "$root"
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
cd "$root"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-3'
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'failed' and e['cases_run'] > 0"
end_watch
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-3' 'EPSILON = 1e-4'
verify
expect_exit 1

# If a user deletes the cache while a watcher runs, the watcher creates a new one and verifies everything again.
watch
rm -rf .reftest
await_batch
expect_events "e['passed'] == 1 and e['failed'] == 1 and sum(x['cases_run'] for x in a if x['event'] == 'verdict') > 0"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'passed'"
await_batch
[ -S .reftest/watch.sock ] || fail "the socket is missing"
end_watch
expect_nothing_to_do
