#!/bin/sh
# A reference that keeps something from one case to the next may pass a case alone, and fail it after other cases. So a
# stored verdict of such a reference counts only if the same cases ran before it, and if one of its cases must run, all
# of them run: after a workload was added, after --case, and if an equal definition ran its cases. If a case is repeated,
# the same cases run before it again.
# A reference that keeps nothing runs only what is missing. A shard has all cases of a definition.
. "$(dirname "$0")/../harness.sh"

# `table NAME`: its first call makes a table that is too short for a later case with 5000 rows.
table() {
	define "$1" <<'P'
import torch

ones = None


@torch.no_grad()
def run(hidden_states, weight):
    global ones
    if ones is None:
        ones = torch.ones(max(4097, hidden_states.shape[0]), 1)
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * ones[: rows.shape[0]]).to(hidden_states.dtype)
P
}
# `counts NAME`: is wrong if an earlier call had another number of rows.
counts() {
	define "$1" <<'P'
import torch

seen = set()


@torch.no_grad()
def run(hidden_states, weight):
    seen.add(hidden_states.shape[0])
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * len(seen)).to(hidden_states.dtype)
P
}
# `many NAME`: adds a workload with 5000 rows.
many() {
	mkdir -p workloads/rmsnorm
	echo '{"definition": "'"$1"'", "workload": {"uuid": "f380a2ef-157b-52e3-84b3-2336c4b40c36", "axes": {"batch_size": 5000}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}}}' >"workloads/rmsnorm/$1.jsonl"
}

given tiny_norm
rm -r workloads
table table
verify
expect_exit 0
expect_status table passed
tables=$(value "len(d['table']['cases'])")
verify
expect_ran 0
many table
many tiny_norm
expect_why table 'another case of the definition must run'
verify
expect_exit 1
expect_status table error raised
expect_status tiny_norm passed
expect_ran $((tables + 1 + 1)) # all cases of table, and the new case of tiny_norm
verify
expect_ran 0
expect_exit 1

rm -r definitions workloads .reftest
counts counts
verify
expect_exit 1
wrong=$(value "[c['id'] for c in d['counts']['cases'] if c['status'] == 'failed'][0]")
run verify counts --device "$device" --sizes small --jobs 1
grep -q ' --force --device .*# if it passes alone, run it without --case' "$work/out" || fail "the printed command says nothing of --case"
run verify counts --device "$device" --sizes small --jobs 1 --case "$wrong" --force
expect_exit 0
run verify --changed --device "$device" --sizes small --jobs 1
expect_exit 1
verify
expect_exit 1

rm -r .reftest
for shard in 1/2 2/2; do verify --shard $shard; done
verify --cached-only
expect_exit 1
expect_status counts failed numeric

# The time limit ends the process of the first case, so the second case runs in another process.
rm -r definitions .reftest
define slow <<'P'
import torch

seen = set()


@torch.no_grad()
def run(hidden_states, weight):
    if hidden_states.shape[0] == 1:
        for i in range(60000000):
            pass
    seen.add(hidden_states.shape[0])
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * len(seen)).to(hidden_states.dtype)
P
verify --timeout 1
expect_exit 1
expect_status slow error timeout
verify --case small:batch_size=1
expect_exit 0
verify
expect_exit 1
expect_status slow failed numeric

# The second case is repeated because its process was killed. The first case runs before it again.
rm -r definitions .reftest
define killed <<'P'
import os

import torch

seen = set()


@torch.no_grad()
def run(hidden_states, weight):
    seen.add(hidden_states.shape[0])
    if len(seen) == 2:
        os.kill(os.getpid(), 9)
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
P
verify
expect_exit 1
expect "[case['status'] for case in d['killed']['cases']][:2] == ['passed', 'error']"
expect "d['killed']['cases'][1]['reason'] == 'crashed'"

rm -r definitions .reftest
table equal_a
table equal_b
many equal_b
verify
expect_status equal_a passed
expect_status equal_b error raised
verify
expect_ran 0
expect_exit 1
