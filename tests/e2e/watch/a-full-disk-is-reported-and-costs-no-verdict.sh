#!/bin/sh
# If the cache's disk is full, watch says so once, and still verifies each save. It answers no query with a verdict that
# could not be stored.
. "$(dirname "$0")/../harness.sh"
isolated=$([ "$(id -u)" = 0 ] && echo 'unshare -m' || echo 'unshare -rm')
$isolated true 2>/dev/null || skip "this machine has no mount namespaces, which are needed to fill a disk"
given tiny_gemm tiny_norm
verify
mkdir "$work/kept"
cp -r .reftest/. "$work/kept"
real=$reftest
cat >"$work/reftest" <<END
#!/bin/sh
exec $isolated sh -c "mount -t tmpfs -o size=1m none .reftest && cp -r '$work/kept/.' .reftest &&
	{ head -c 2M /dev/zero >.reftest/fill || true; } 2>/dev/null; exec '$real' \"\\\$@\"" sh "\$@"
END
chmod +x "$work/reftest"
reftest=$work/reftest
watch
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'failed'"
await "e['event'] == 'notice' and 'cannot store the verdicts' in e['message']"
await_batch
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-3'
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'failed' and e['cases_run'] > 0"
await_batch
expect_events "not any(x['event'] == 'notice' for x in a)" # the full disk was reported once before
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-3' 'EPSILON = 1.001e-6'
await "e['event'] == 'verdict'"
expect_events "e['status'] == 'passed' and e['cases_run'] > 0"
await_batch
# only the namespace of the watcher has its socket
[ "$(id -u)" != 0 ] || REFTEST_TRACE=1 nsenter -m -t "$program" sh -c "cd '$root' && exec '$real' verify --changed \
	--sizes small --device '$device'" >"$work/answer" 2>&1 || fail "verify --changed: $(cat "$work/answer")"
[ "$(id -u)" != 0 ] || grep -q 'the watcher reports 1 definitions as verified and 1 to check' "$work/answer" ||
	fail "the watcher answered with verdicts that are not stored: $(cat "$work/answer")"
end_watch
reftest=$real
