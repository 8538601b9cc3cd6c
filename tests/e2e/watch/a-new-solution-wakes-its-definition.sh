#!/bin/sh
# If solutions are ground truths, watch notices a new solution, also the first one of an author, and verifies its
# definition. watch also notices that the folder of an author is moved away. A query takes new solutions into account.
# (The solution of the first author in the order of the alphabet is the ground truth.)
. "$(dirname "$0")/../harness.sh"
code='import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return y.to(torch.bfloat16)'
echo "$code" | define norm
watch --ground-truth solution
echo "$code" | sed 's,x.pow(2),(x * x),' | define_solution bob norm right # no solution is followed yet
await "e['event'] == 'verdict'"
expect_events "(e['name'], e['status']) == ('norm', 'passed')"
await_batch
echo "$code" | sed 's/1e-6/1e-1/' | define_solution ada norm wrong
await "e['event'] == 'verdict'"
expect_events "(e['name'], e['status']) == ('norm', 'failed')"
await_batch
mv solutions/ada "$work/ada"
await "e['event'] == 'verdict'"
expect_events "(e['name'], e['status']) == ('norm', 'passed')"
await_batch
mv "$work/ada" solutions/ada
"$reftest" verify --changed --ground-truth solution --sizes small --device "$device" >"$work/answer" 2>&1 && status=0 ||
	status=$?
expect_exit 1
grep -q 'FAILED   rmsnorm/norm' "$work/answer" || fail "the watcher answered without the new solution"
end_watch
