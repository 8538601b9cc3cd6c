#!/bin/sh
# An array job of a real Slurm verifies a dataset in shards on two nodes, with the lines in docs/ci.md. (The test starts
# and stops slurmctld and two slurmd processes on this machine, with munge, as the current user.) The verdicts of the
# shards are merged, once through redis and once through exported files. The merged verdicts equal the verdicts of a run
# without shards.
. "$(dirname "$0")/../harness.sh"
with_gates
. "$top/tests/e2e/remotes.sh"
for command in munged slurmctld slurmd sbatch srun scontrol; do
	PATH=$PATH:/usr/sbin:/sbin
	command -v $command >/dev/null || fail "there is no $command: tools/setup.sh --tests installs it"
done
given tiny_norm tiny_gemm
define wrong <<END
def run(hidden_states, weight):
    gate("$work/running", "$work/go")
    return hidden_states
END
touch "$work/go"
verify
expect_exit 1
value "sorted((n, i, k['status'], k['reason']) for (n, i), k in c.items())" >"$work/whole"
ran=$(value "s['cases_run']")
forget

ports=$("$python" -I -S -c '
import socket
all = [socket.socket() for _ in range(3)]
for s in all: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in all))')
set -- $ports
mkdir -m 755 "$work/slurm" "$work/slurm/state" "$work/slurm/n1" "$work/slurm/n2" "$work/munge" "$work/exports"
chmod 755 "$work"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 600 "$work/munge/key"
cat >"$work/slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/%n
SlurmctldPidFile=$work/slurm/slurmctld.pid
SlurmdPidFile=$work/slurm/slurmd.%n.pid
SlurmctldLogFile=$work/slurm/slurmctld.log
SlurmdLogFile=$work/slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$2 CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$3 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
SLURM_CONF=$work/slurm/slurm.conf
export SLURM_CONF
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
	--seed-file="$work/munge/seed" --log-file="$work/munge/log" >"$work/munge/out" 2>&1 &
servers="$servers $!"
until_true test -S "$work/munge/socket"
slurmctld -D >"$work/slurm/ctld.out" 2>&1 &
servers="$servers $!"
for node in n1 n2; do
	slurmd -D -N $node >"$work/slurm/$node.out" 2>&1 &
	servers="$servers $!"
done
both_idle() { [ "$(sinfo -h -N -o '%T' | grep -c '^idle$')" = 2 ]; }
until_true both_idle

redis_begins
# The lines are from docs/ci.md, with this test's paths, and with the CPU instead of the GPU.
mkdir -p "$work/opt/bin" "$work/opt/share/reftest"
ln -s "$reftest" "$work/opt/bin/reftest"
ln -s "$top/tools/slurm_array.sh" "$work/opt/share/reftest/"
"$python" -I -S - "$top/docs/ci.md" "/opt/reftest/ => $work/opt/" "/shared/dataset => $root" \
	"redis://cache:6379 => $REFTEST_REMOTE" "--array=1-8 => --array=1-4" \
	"--device cuda => --device $device --sizes small --jobs 1" "--device-class sm_90 => --device $device --sizes small" \
	>"$work/lines" 2>"$work/err" <<'END' || fail "docs/ci.md no longer has the expected lines for Slurm: $(tail -n 1 "$work/err")"
import re, sys
(lines,) = re.findall(r"^export REFTEST_ROOT=.*?(?=^```$)", open(sys.argv[1], encoding="utf-8").read(), re.M | re.S)
for change in sys.argv[2:]:
    old, new = change.split(" => ")
    assert old in lines, f"nothing says {old}"
    lines = lines.replace(old, new)
print(lines, end="")
END
step="the lines of docs/ci.md for Slurm"
rm "$work/go" # a task waits until this file exists
SBATCH_OUTPUT=$work/exports/task-%a.txt REFTEST_EXPORTS=$work/exports TMPDIR=$work bash -c \
	'. "$0"; code=$?; echo "$job" >"$1"; exit $code' "$work/lines" "$work/job" >"$work/out" 2>"$work/err" &
lines=$!
whole_waits_or_ended() { squeue -h -o %r | grep -qx Dependency || ! kill -0 $lines; }
until_true whole_waits_or_ended
touch "$work/go"
wait $lines && status=0 || status=$?
# srun starts `reftest verify --cached-only` when every task has ended. This last command runs no case, and reports that
# the definition `wrong` failed.
expect_exit 1
expect_says 'FAILED   rmsnorm/wrong' ' 0 cases run'
cat "$work"/exports/task-*.txt >"$work/reports"
[ "$(grep -c 'elements compared' "$work/reports")" = 4 ] || fail "$step: $(cat "$work/reports") $(tail -n 5 "$work/slurm"/*.log)"
for task in 1 2 3 4; do
	scontrol show job "$(cat "$work/job")_$task" -o
done >"$work/jobs"
nodes=$(grep -o ' NodeList=n[12]' "$work/jobs" | sort -u | wc -l)
[ "$nodes" = 2 ] || fail "$step: $nodes of the two nodes worked: $(cat "$work/jobs")"
sum=$(sed -n 's/.*; \([0-9]*\) cases* run.*/\1/p' "$work/reports" | awk '{ s += $1 } END { print s }')
[ "$sum" = "$ran" ] || fail "$step: the tasks ran $sum cases, not the $ran that there are"

same_as_whole() {
	verify --cached-only
	expect_exit 1
	expect_ran 0
	value "sorted((n, i, k['status'], k['reason']) for (n, i), k in c.items())" | cmp -s - "$work/whole" ||
		fail "$step: the result differs from the unsharded run's"
}
forget # the run of srun stored the verdicts
same_as_whole # the verdicts are merged through the remote
forget
unset REFTEST_REMOTE
run cache import "$work"/exports/shard-*-of-4
expect_exit 0
same_as_whole
end_servers
