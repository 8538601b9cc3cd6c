#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If a definition is edited while its reference runs, no verdict is stored, and the next run verifies the definition
# again.
. "$(dirname "$0")/../harness.sh"
with_gates
given tiny_gemm
define slow_norm <<END
import torch


def run(hidden_states, weight):
    gate("$work/started", "$work/go")
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
END
begin verify --format json --device "$device" --sizes small --jobs 1
started
edit definitions/rmsnorm/slow_norm.json '1e-6)' '1e-5)'
: >"$work/go"
ended
expect_exit 3
expect "d['slow_norm']['changed'] is True"
expect "not any(all_of('slow_norm', 'kept'))"
expect_status tiny_gemm passed
verify
expect_exit 1
expect_status slow_norm failed numeric
expect "not any(all_of('slow_norm', 'cached'))"
expect "all(all_of('tiny_gemm', 'cached'))"
