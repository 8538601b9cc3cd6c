#!/bin/sh
# A reference that reads the clock or the name of the machine can give other outputs in another run. Such a reference
# gets at most the verdict "checked", even if a ground truth agrees. If the kernel allows it, reftest sets the host name
# for references to "reftest". It removes the environment variables that no reference needs.
. "$(dirname "$0")/../harness.sh"

define reads_clock <<'P'
import os
import time

import torch


def run(hidden_states, weight):
    time.time()
    print("name:", os.uname().nodename, [name for name in os.environ if name.startswith("REFTEST_CACHE")])
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)
P
export REFTEST_CACHE_SECRET=1 # a variable that no reference needs
verify reads_clock --case 'small:batch_size=1'
expect_exit 3
expect "d['reads_clock']['status'] == 'checked' and d['reads_clock']['reason'] == 'unsteady'"
expect "d['reads_clock']['cases'][0]['outputs'][0]['status'] == 'passed' and not d['reads_clock']['cases'][0]['kept']"
expect "'[]' in d['reads_clock']['cases'][0]['printed']"
"$reftest" doctor --format json | grep -q 'missing layers.*uts_namespace' ||
	expect "d['reads_clock']['cases'][0]['printed'].startswith('name: reftest ')"
verify reads_clock --case 'small:batch_size=1' --accept checked
expect_exit 0
run verify reads_clock --alone --device "$device" --case 'small:batch_size=1'
expect_says 'the reference may read the clock'
expect_says "the definition can be checked, but not verified: line 2 of the reference contains 'import time'"
run explain reads_clock
expect_says "the definition can be checked, but not verified: line 2 of the reference contains 'import time'"

# A reference that reads the clock and is wrong still fails.
define reads_clock <<'P'
import time

import torch


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
P
verify reads_clock --case 'small:batch_size=1'
expect_exit 1
expect "d['reads_clock']['status'] == 'failed'"
