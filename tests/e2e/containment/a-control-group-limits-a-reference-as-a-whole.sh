#!/bin/sh
# own interpreter: the test checks what a reference can access.
# If the system delegates a control group to reftest, all processes of a reference share one memory limit, which
# includes shared memory. No control group is left after a run. Without such a group, each process has its own limits.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the amounts of memory are those of the CPU"

define takes_much_together <<'P'
import os
import select

import torch


def run(hidden_states, weight):
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            hog = bytearray(os.urandom(1)) * (120 << 20)
            os.read(wait, 1)
            os._exit(len(hog) & 1)
        children.append(pid)
    select.select([], [], [], 2)
    for pid in children:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)


wait, _ = os.pipe()
P
define shares_much <<'P'
import mmap
import tempfile


def run(hidden_states, weight):
    file = tempfile.TemporaryFile()
    file.truncate(400 << 20)
    hog = mmap.mmap(file.fileno(), 400 << 20)
    for at in range(0, len(hog), 4096):
        hog[at] = 1
    raise ValueError("nothing stopped it")
P
define sleeps <<'P'
import time


def run(hidden_states, weight):
    time.sleep(600)
P

# `grouped COMMAND…`: runs a command in a control group that is delegated to it.
mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") { print $5; exit } }' /proc/self/mountinfo)
group=$mount/reftest-test-$$
if [ -n "$mount" ] && [ -w "$mount/cgroup.subtree_control" ] && [ "$(id -u)" = 0 ] && mkdir "$group" 2>/dev/null; then
	trap 'code=$?; rmdir "$group"/reftest-*/* "$group"/reftest-* "$group" 2>/dev/null || true; test_end $code' EXIT
	grep -q memory "$group/cgroup.controllers" && grep -q pids "$group/cgroup.controllers" ||
		skip "the groups of this machine have no controllers of memory and processes"
	grouped() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
elif systemd-run --user --scope -q -p Delegate=yes true 2>/dev/null; then
	group=
	grouped() { systemd-run --user --scope -q -p Delegate=yes "$@"; }
else
	skip "this machine delegates no control group"
fi
verify_grouped() {
	status=0
	grouped "$reftest" verify "$@" --alone --force --format json --device "$device" --sizes small >"$work/out" 2>"$work/err" ||
		status=$?
}

verify_grouped takes_much_together --memory 300M
expect_exit 1
expect "d['takes_much_together']['cases'][0]['reason'] == 'memory_limit'"
expect "'all processes of the reference together ran out of memory; --memory SIZE' in d['takes_much_together']['cases'][0]['message']"
expect "not any(case['kept'] for case in d['takes_much_together']['cases'])"
verify_grouped takes_much_together --memory 2G
expect_exit 0
verify_grouped shares_much --memory 300M
expect "d['shares_much']['cases'][0]['reason'] == 'memory_limit'"

# Without a control group, reftest itself adds up the private memory of all processes of a reference. It can do this
# only if the reference has its own /proc.
run verify takes_much_together --memory 300M --alone --force --format json --device "$device" --sizes small
expect_exit 1
expect "d['takes_much_together']['cases'][0]['reason'] == 'memory_limit'"

status=0
grouped "$reftest" doctor >"$work/out" 2>"$work/err" || status=$?
expect_says 'a control group limits the memory of each reference as a whole'
run doctor
expect_says 'because no control group is delegated'

# No control group is left. If a run is killed, the next run removes the control groups of the killed run.
[ -n "$group" ] || exit 0
left() { find "$group" -mindepth 1 -type d; }
[ -z "$(left)" ] || fail "groups are left: $(left)"
[ -z "$(cat "$group/cgroup.subtree_control")" ] || fail "the controllers of the group are still given to its children"
grouped "$reftest" verify sleeps --alone --force --device "$device" --sizes small >"$work/out" 2>"$work/err" &
for _ in $(seq 200); do
	[ -z "$(find "$group" -mindepth 2 -name 1 -type d)" ] || break
	sleep 0.1
done
main=$(basename "$(find "$group" -maxdepth 1 -name 'reftest-*')")
[ -n "$main" ] || fail "no group was made: $(cat "$work/err")"
kill -9 "${main#reftest-}"
wait $! || true
for _ in $(seq 100); do
	grep -q 'populated 0' "$group/cgroup.events" && break
	sleep 0.1
done
[ -n "$(left)" ] || fail "a killed run has no leftovers, so this test tests nothing"
echo "-memory -pids" >"$group/$main/cgroup.subtree_control"
echo "-memory -pids" >"$group/cgroup.subtree_control" # a group with controllers for its children takes no process
verify_grouped takes_much_together --memory 2G
expect_exit 0
[ -z "$(left)" ] || fail "groups are left: $(left)"

# A control group that contains another process, such as the shell from which reftest was started, is not used.
sh -c 'echo $$ >"$0/cgroup.procs" && "$@"; exit $?' "$group" "$reftest" verify shares_much --memory 300M --alone --force \
	--format json --device "$device" --sizes small >"$work/out" 2>"$work/err" || status=$?
expect "d['shares_much']['cases'][0]['reason'] == 'raised'"
