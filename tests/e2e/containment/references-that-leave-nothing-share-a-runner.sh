#!/bin/sh
# References that can leave nothing behind run one after the other in the same process. A reference that can leave
# something behind gets its own process, and the result of its case contains the reason. Without `--isolation kept`,
# every reference gets its own process. If a reference fails in a process that ran other references before, the
# reference runs again in a new process before the failure is reported, unless it may keep something from one case to the
# next. The verdicts are the same with and without the option.
. "$(dirname "$0")/../harness.sh"

norm() { # norm NAME EPSILON LINE
	define "$1" <<END
import torch

$3

def run(hidden_states, weight):
    rows = hidden_states.float()
    rows = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + $2)
    return (rows * weight.float()).to(hidden_states.dtype)
END
}

norm a_kept 1e-6 ""
norm b_kept 1e-6 "three = 3"
norm c_memory 1e-6 "scratch = torch.empty(1)"
norm d_patches 1e-6 "torch.Tensor.copy_ = lambda self, *others: self"
norm e_wrong 1e-2 ""
norm f_kept 1e-6 "four = 4"
norm g_raises 1e-6 "five = 1 / 0"
norm h_kept 1e-6 "six = 6"
# Whether the next reference gets a new runner or a kept one depends on timing, so the test has several right and
# several wrong definitions.
for i in 1 2 3 4; do
	norm b_kept_$i 1e-6 "i = $i"
	norm e_wrong_$i 1e-2 "i = $i"
done

# Counts how often a kept runner was ready for its next reference. Each runner reports how many seconds its start took,
# and a runner that was kept reports 0.
kept() { grep -c 'child [0-9]*: {"ready": true, "seconds": 0}' "$work/err" || true; }

export REFTEST_TRACE=1
case_of() { printf 'next(d for d in v["definitions"] if d["name"] == "%s")["cases"][0]' "$1"; }
expect_isolation() { # expect_isolation NAME STATUS ISOLATION PART-OF-REASON
	found=$("$python" -I -S -c '
import json, sys
case = next(d for d in json.load(open(sys.argv[1]))["definitions"] if d["name"] == sys.argv[2])["cases"][0]
print(case["status"], case["isolation"], case["isolation_reason"])' "$work/out" "$1")
	expectations=$((expectations + 1))
	case $found in "$2 $3 "*"$4"*) ;; *) fail "$1 is '$found', expected '$2 $3 …$4…'" ;; esac
}

step='kept'
verify --all --force --isolation kept
for name in a_kept b_kept f_kept h_kept; do expect_isolation $name passed kept None; done
expect_isolation c_memory passed own "uses the attribute 'empty'"
expect_isolation d_patches failed own "changes the attribute 'copy_'"
expect_isolation e_wrong failed own "the reference failed"
expect_isolation g_raises error own "the reference failed"
expect_says 'repeated in a runner of its own'
expectations=$((expectations + 1))
[ "$(kept)" -ge 2 ] || fail "runners were kept $(kept) times, expected 2 or more"

step='own'
verify --all --force
for name in a_kept b_kept f_kept h_kept; do expect_isolation $name passed own 'only with --isolation kept'; done
expect_isolation e_wrong failed own 'only with --isolation kept'
expectations=$((expectations + 1))
[ "$(kept)" = 0 ] || fail 'a runner was kept without --isolation kept'

# A reference that keeps something may pass in a new runner, where no case ran before, although it fails after other
# cases. Its failure therefore counts at once. Each of the references j_…_keeps fails after its first case.
step='keeps'
for i in 1 2 3 4 5 6; do
	for kept in a b c d; do norm j_${i}_$kept 1e-6 "$kept = $i"; done
	define j_${i}_keeps <<END
import torch

seen = []

def run(hidden_states, weight):
    seen.append(len(hidden_states))
    rows = hidden_states.float()
    rows = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + (1e-6 if seen[0] == seen[-1] else $i))
    return (rows * weight.float()).to(hidden_states.dtype)
END
done
verify --force --isolation kept 'j_*'
expect "all([case['status'] for case in d['j_%d_keeps' % i]['cases']][:2] == ['passed', 'failed'] for i in range(1, 7))"

step='explain'
verify --all --force --isolation kept
run explain a_kept
expect_says 'isolation kept'
[ "$(grep -c isolation "$work/out")" = 1 ] || fail 'the isolation is printed for each case'
run explain c_memory
expect_says "isolation own: it uses the attribute 'empty'"
