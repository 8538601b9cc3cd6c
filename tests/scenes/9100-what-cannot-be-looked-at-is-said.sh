#!/bin/sh
# 9100: a folder of definitions or workloads that cannot be read is no reason to be silent about what may lie in it: a
# sentence on stderr and in the JSON, and exit code 2, for whoever asked for what it might hold.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
verify --sizes small,medium
expect_exit 0
expect "r['problems'] == []"

ln -s loop definitions/loop # can be opened by nobody, root included
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

# nobody asked for that op_type
verify rmsnorm/tiny_norm
expect_exit 0
run explain --device "$device" tiny_norm
expect_exit 0
rm definitions/loop

# workloads that cannot be read are cases that nobody verified
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

# a running watcher, which vouches for what it has seen, makes no difference
watch
watcher=$program
ln -s loop definitions/loop
"$reftest" verify --changed --device "$device" --sizes small >"$work/asked" 2>&1 && fail "a watcher hides what nobody can read"
expectations=$((expectations + 1))
grep -q 'definitions/loop: cannot open the folder' "$work/asked" || fail "nothing is said of it: $(cat "$work/asked")"
program=$watcher
end_watch
