#!/bin/sh
# If a reference's kernel fails an assertion on the GPU, the CUDA context of its process cannot be used any more. Each
# case of this reference is reported with the failed assertion. Other definitions that the same run verifies afterwards
# (one at a time, --jobs 1) pass.
. "$(dirname "$0")/../e2e/harness.sh"
given tiny_gemm tiny_norm
define asserts <<'REFERENCE'
import torch


def run(hidden_states, weight):
    far = torch.full((1,), 1 << 20, dtype=torch.int64, device=weight.device)
    return hidden_states * weight[far]
REFERENCE
define asserts_again <<'REFERENCE'
import torch


def run(hidden_states, weight):
    far = torch.full((1,), 1 << 20, dtype=torch.int64, device=weight.device)
    return hidden_states + weight[far]
REFERENCE
run verify --format json --device cuda:0 --jobs 1 asserts asserts_again tiny_gemm tiny_norm
expect_exit 1
for name in asserts asserts_again; do
	expect_status $name error
	expect "all(status == 'error' for status in all_of('$name', 'status'))"
	expect "any('assert' in text for text in all_of('$name', 'message'))"
done
expect_status tiny_gemm passed
expect_status tiny_norm passed
run verify --format json --device cuda:0 --jobs 1 --force tiny_norm asserts tiny_gemm
expect_exit 1
expect_status asserts error
expect_status tiny_gemm passed
expect_status tiny_norm passed
expect_no_process
