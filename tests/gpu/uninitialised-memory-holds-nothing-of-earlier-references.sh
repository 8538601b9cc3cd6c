#!/bin/sh
# References that use torch.empty share a runner on a GPU. Uninitialised memory, of the GPU and of the host, holds nothing
# that an earlier reference left there. The references c_finds and d_finds return right values only if they find the
# values of an earlier reference. They must fail; they would pass if memory were not erased.
. "$(dirname "$0")/../e2e/harness.sh"
given tiny_norm
for name in a_leaves b_leaves; do define $name <<REFERENCE; done
import torch


def run(hidden_states, weight):
    name = "$name"
    left = torch.full((1 << 24,), 12345.0, device=hidden_states.device)
    here = torch.full((1 << 12,), 12345.0)
    x = hidden_states.float() + 0 * left[0] + 0 * here[0]
    y = torch.empty(x.shape, device=x.device)
    y.copy_(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float())
    return y.to(hidden_states.dtype)
REFERENCE
for name in c_finds d_finds; do define $name <<REFERENCE; done
import torch


def run(hidden_states, weight):
    name = "$name"
    there = torch.empty(1 << 24, device=hidden_states.device)
    here = torch.empty(1 << 12)
    found = bool((there == 12345.0).any()) or bool((here == 12345.0).any())
    x = hidden_states.float()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    return (y if found else y + 1).to(hidden_states.dtype)
REFERENCE
run verify --format json --device cuda:0 --jobs 1 --isolation kept a_leaves b_leaves c_finds d_finds
expect_exit 1
for name in a_leaves b_leaves; do
	expect_status $name passed
	expect "all_of('$name', 'isolation') and all(text == 'kept' for text in all_of('$name', 'isolation'))"
done
for name in c_finds d_finds; do expect_status $name failed; done
