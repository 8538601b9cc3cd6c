#!/bin/sh
# Four references allocate 55 % of the GPU's memory each, so only one at a time can run. A reference that fails to
# allocate its memory while others run is retried when no other runs, and passes.
# own interpreter: the test asks torch how much memory the GPU has.
. "$(dirname "$0")/../e2e/harness.sh"
total=$("$python" -c 'import torch; print(torch.cuda.mem_get_info()[1])')
for sums in 10 11 12 13; do # equal references would share one execution
	define "takes_half_$sums" <<P
import torch


def run(hidden_states, weight):
    half = torch.zeros($total * 55 // 100 // 8, dtype=torch.int64, device=weight.device)
    for _ in range($sums):  # so that the references use their memory at the same time
        assert half.sum().item() == 0
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)
P
done
export REFTEST_TRACE=1
run verify --format json --device "$device" --jobs 4 --memory "$((total * 8 / 10))"
expect_exit 0
for sums in 10 11 12 13; do
	expect_status "takes_half_$sums" passed
done
expect_says "retry alone"
