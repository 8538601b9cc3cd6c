#!/bin/sh
# own interpreter: the test checks what a reference can access.
# --memory limits the memory of a reference. The default limit leaves room for a reference that uses much more memory
# than its tensors.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the limits of memory are those of the CPU"

define takes_half_a_gib <<'P'
import torch


def run(hidden_states, weight):
    torch.empty(1 << 29, dtype=torch.uint8)
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)
P
verify takes_half_a_gib
expect "d['takes_half_a_gib']['status'] == 'passed'"
verify takes_half_a_gib --force --memory 8G
expect "d['takes_half_a_gib']['status'] == 'passed'"
verify takes_half_a_gib --force --memory 256M
expect_exit 1
expect "d['takes_half_a_gib']['status'] == 'error' and d['takes_half_a_gib']['cases'][0]['reason'] == 'memory_limit'"
expect "'it may use 256 MiB; --memory SIZE changes this limit' in d['takes_half_a_gib']['cases'][0]['message']"
expect "not any(case['kept'] for case in d['takes_half_a_gib']['cases'])"

# The command that reftest prints below a failure, to repeat the case, contains the option --memory.
run verify takes_half_a_gib --force --memory 256M --alone --device "$device" --sizes small
expect_says '--memory 268435456'

# No single process exceeds the limit, but all together do. If a machine cannot limit all processes of a reference
# together, doctor and each verdict say so.
define takes_together <<'P'
import os
import time

import torch


def run(hidden_states, weight):
    for _ in range(4):
        if os.fork() == 0:
            memory = bytearray(b"x" * (150 << 20))
            time.sleep(600)
    time.sleep(5)
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (y * weight.to(torch.float32)).to(hidden_states.dtype)
P
verify takes_together --force --memory 512M --case 'small:batch_size=1'
expect "('memory' in s['containment']) != (d['takes_together']['cases'][0]['reason'] == 'memory_limit')"
expect "'memory' in s['containment'] or 'together ran out of memory' in d['takes_together']['cases'][0]['message']"
verify takes_together --force --memory 8G --case 'small:batch_size=1'
expect "d['takes_together']['status'] == 'checked'" # it reads the clock

# The option --memory of `watch` limits references, too.
rm -r .reftest
run watch --once --memory 256M --device "$device" --sizes small
expect_exit 1
run watch --once --memory 1X --device "$device" --sizes small
expect_exit 2
expect_says '--memory takes a number of bytes above 0'
