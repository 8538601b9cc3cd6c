#!/bin/sh
# 7070: the root is moved away and back, deleted and made anew: watch says so, waits, and goes on with what is there.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
cp -r "$root" "$work/copy"
cd "$work"
watch --root "$root"
mv "$root" "$work/elsewhere"
await "e['event'] == 'notice' and 'is gone' in e['message']"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' "$work/elsewhere/definitions/rmsnorm/tiny_norm.json"
mv "$work/elsewhere" "$root"
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
heard "e['passed'] == 1 and e['failed'] == 1"
rm -rf "$root"
await "e['event'] == 'notice' and 'is gone' in e['message']"
cp -r "$work/copy" "$work/new"
mv "$work/new" "$root"
await "e['event'] == 'notice' and 'is back' in e['message']"
await_batch
# Its cache went with it. What is seen of the new files in a second look may end the first batch, which has run by then.
heard "e['passed'] == 2 and sum(x['cases_run'] for x in a if x['event'] == 'verdict') > 0"
sed -i 's/EPSILON = 1e-6/EPSILON = 1e-4/' "$root/definitions/rmsnorm/tiny_norm.json"
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'failed'"
end_watch
cd "$root"
verify --changed
expect_exit 1
expect_ran 0

# the same from inside, where the root is "." and the working directory stays the deleted one
watch
mkdir "$work/inner"
cp -r definitions workloads blob "$work/inner/"
rm -rf "$root"
await "e['event'] == 'notice' and 'is gone' in e['message']"
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

# somebody deletes the cache under a running watcher: a new one is begun and everything verified again
watch
rm -rf .reftest
await_batch
heard "e['passed'] == 1 and e['failed'] == 1 and sum(x['cases_run'] for x in a if x['event'] == 'verdict') > 0"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
await "e['event'] == 'verdict' and e['name'] == 'tiny_norm' and e['status'] == 'passed'"
await_batch
[ -S .reftest/watch.sock ] || fail "nobody can ask any more"
end_watch
expect_nothing_to_do
