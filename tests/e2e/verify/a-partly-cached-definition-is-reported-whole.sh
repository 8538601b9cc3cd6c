#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If one case of a definition is new and the others are cached, `verify --changed` reports the same margin as `verify`
# without --changed.
. "$(dirname "$0")/../harness.sh"
define near_norm <<'PYTHON'
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)
    return (normed * weight.float() * (1 + 2**-10)).to(hidden_states.dtype)
PYTHON
margin() { grep -o 'margin [0-9.e-]*' "$work/out" || fail "$step: no margin is printed"; }
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
[ "$half" = "$(margin)" ] || fail "partly cached it was $half, and fully cached it is $(margin)"
run verify --force --device "$device" --sizes small --jobs 1 --case 'workload:one more' near_norm
[ "$known" != "$(margin)" ] || fail "the new case has the same margin as the cached ones, $known, so this tests nothing"
