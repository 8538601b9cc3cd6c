#!/bin/sh
# --memory also limits how much of a GPU's memory torch may allocate. A reference that allocates more memory gets the
# reason memory_limit. The default of --memory leaves room for a reference that uses much more memory than its tensors.
. "$(dirname "$0")/../e2e/harness.sh"
define takes_a_gib <<'P'
import torch


def run(hidden_states, weight):
    torch.empty(1 << 30, dtype=torch.uint8, device=weight.device)
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)
P
define takes_all <<'P'
import torch


def run(hidden_states, weight):
    hog = []
    while True:
        hog.append(torch.empty(1 << 30, dtype=torch.uint8, device=weight.device))
        assert len(hog) <= 4, "more than the default"
P
verify takes_a_gib
expect "d['takes_a_gib']['status'] == 'passed'"
verify takes_a_gib --force --memory 512M
expect_exit 1
expect "d['takes_a_gib']['cases'][0]['reason'] == 'memory_limit'"
expect "'it may use 512 MiB; --memory SIZE changes this limit' in d['takes_a_gib']['cases'][0]['message']"
expect "not any(case['kept'] for case in d['takes_a_gib']['cases'])"
verify takes_all
expect "d['takes_all']['cases'][0]['reason'] == 'memory_limit'"
