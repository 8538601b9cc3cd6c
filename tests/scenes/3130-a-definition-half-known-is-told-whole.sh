#!/bin/sh
# 3130: of a definition of which some cases are known and one is new, `verify --changed` tells the same margin as a run that
# looks at everything: what was read of the known ones is not less because they are known.
. "$(dirname "$0")/scene.sh"
define near_norm <<'PYTHON'
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * (1 + 2**-10)).to(hidden_states.dtype)
PYTHON
margin() { grep -o 'margin [0-9.e-]*' "$work/out" || fail "$step: no margin is told"; }
run verify --no-workloads --device "$device" --sizes small --jobs 1
expect_exit 0
known=$(margin)
mkdir -p workloads/rmsnorm
cat >workloads/rmsnorm/near_norm.jsonl <<'J'
{"definition": "near_norm", "workload": {"uuid": "one more", "axes": {"batch_size": 3}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}}, "solution": null, "evaluation": null}
J
run verify --no-workloads --changed --device "$device" --sizes small --jobs 1
expect_exit 0
run verify --changed --device "$device" --sizes small --jobs 1
expect_exit 0
expect_says ' cached), margin'
half=$(margin)
run verify --device "$device" --sizes small --jobs 1
expectations=$((expectations + 1))
[ "$half" = "$(margin)" ] || fail "half known it was $half, and all known it is $(margin)"
run verify --force --device "$device" --sizes small --jobs 1 --case 'workload:one more' near_norm
[ "$known" != "$(margin)" ] || fail "the new case has the margin of the known ones, $known, and shows nothing"
