#!/bin/sh
# If a folder of definitions or workloads cannot be read, a message on stderr and in the JSON says so. The exit status
# is 2 for each run whose selection may include definitions in the unreadable folder.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
verify --sizes small,medium
expect_exit 0
expect "r['problems'] == []"

ln -s loop definitions/loop # nobody can open this link, not even root
for command in "verify --changed --device $device --sizes small" "status --device $device"; do
	# shellcheck disable=SC2086 # words
	run $command
	expect_exit 2
	expect_says 'reftest: definitions/loop: cannot open the folder: Too many levels of symbolic links'
done
verify
expect_exit 2
expect "r['problems'] == ['definitions/loop: cannot open the folder: Too many levels of symbolic links']"
expect "s['exit'] == 2 and s['passed'] == 2"
run verify --format github --device "$device" --sizes small
expect_exit 2
expect_says '::error file=definitions/loop,title=left out::'

# The next two commands do not select the op_type that cannot be read, so they succeed.
verify rmsnorm/tiny_norm
expect_exit 0
run explain --device "$device" tiny_norm
expect_exit 0
rm definitions/loop

# If a workload cannot be read, its cases count as not verified.
mv workloads/rmsnorm "$work/kept"
ln -s rmsnorm workloads/rmsnorm
verify tiny_norm
expect_exit 2
expect_says 'workloads/rmsnorm: cannot open the folder'
run explain --device "$device" tiny_norm
expect_exit 2
verify tiny_gemm
expect_exit 0
rm workloads/rmsnorm
mv "$work/kept" workloads/rmsnorm
verify
expect_exit 0

# A running watcher reports unreadable folders in the same way as `verify`.
watch
watcher=$program
ln -s loop definitions/loop
"$reftest" verify --changed --device "$device" --sizes small >"$work/asked" 2>&1 && fail "with a watcher the unreadable folder is not reported"
expectations=$((expectations + 1))
grep -q 'definitions/loop: cannot open the folder' "$work/asked" || fail "there is no message about the unreadable folder: $(cat "$work/asked")"
program=$watcher
end_watch
