#!/bin/sh
# own interpreter: the references of this test damage their interpreter, so it shares no interpreter with other tests.
# Some references cheat: they write to every file descriptor, patch torch, kill other processes, change their inputs,
# overwrite shared memory or claim to have passed. The verdicts of these references still depend only on the outputs. A
# cheating reference does not affect a correct definition that the same processes verify in the same run.
. "$(dirname "$0")/../harness.sh"

# Definitions are verified in the order of their names. Therefore copies of the correct definition run before, between
# and after the cheating ones.
for name in a_honest_norm m_honest_norm z_honest_norm; do
	define $name <<'END'
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
END
	# The copies have different source texts and therefore different subject digests, because equal copies would
	# share one run.
	edit definitions/rmsnorm/$name.json 'return (' "number = '$name'\\n    return ("
done

define b_claims_to_have_passed <<'END'
import os

import torch


def run(hidden_states, weight):
    claims = [
        b'{"done": true, "status": "passed", "ok": true, "outputs": []}\n',
        b'{"id": 1, "event": "done", "shape": [[1, 64]], "dtype": ["bfloat16"]}\n',
        b'{"verdict": {"status": "passed"}}\n',
    ]
    for descriptor in range(256):
        for claim in claims:
            try:
                os.write(descriptor, claim)
            except OSError:
                pass
    return torch.zeros_like(hidden_states)
END

define c_patches_torch <<'END'
import torch


def close_enough(*arguments, **keywords):
    return True


torch.allclose = torch.equal = close_enough
torch.Tensor.copy_ = lambda self, *arguments, **keywords: self
torch.Tensor.data_ptr = lambda self: 0
torch.rsqrt = lambda value: value * 0 + 7
torch.Tensor.float = lambda self: self


def run(hidden_states, weight):
    return hidden_states
END

define d_kills_its_neighbours <<'END'
import os
import signal


def run(hidden_states, weight):
    parent = os.getppid()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                fields = open(f"/proc/{entry}/stat").read().rsplit(")", 1)[1].split()
                if int(fields[1]) == parent:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                pass
    return hidden_states
END

define e_makes_zeros_right <<'END'
import torch


def run(hidden_states, weight):
    hidden_states.zero_()
    weight.zero_()
    return torch.zeros_like(hidden_states)
END

define f_scribbles_over_the_arena <<'END'
import ctypes

import torch


def run(hidden_states, weight):
    place = hidden_states.data_ptr()
    for line in open("/proc/self/maps"):
        ends, rights = line.split()[:2]
        begin, end = (int(part, 16) for part in ends.split("-"))
        if begin <= place < end and "w" in rights:
            ctypes.memset(begin, 0, end - begin)
    return torch.zeros_like(hidden_states)
END

define g_answers_anew_each_time <<'END'
import torch

calls = []


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    normed = normed * (1 + 3e-3 * len(calls))
    calls.append(1)
    return (normed * weight.float()).to(hidden_states.dtype)
END

define h_remembers_the_first_answer <<'END'
import torch

kept = []


def run(hidden_states, weight):
    if not kept:
        rows = hidden_states.float()
        normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
        kept.append((normed * weight.float()).to(hidden_states.dtype))
    return kept[0]
END

define i_writes_past_its_output <<'END'
import ctypes

import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    ctypes.memset(weight.data_ptr() + 2 * weight.numel(), 0, 8)
    return (normed * weight.float()).to(hidden_states.dtype)
END

define j_leaves_a_process_behind <<'END'
import os
import time

import torch


def run(hidden_states, weight):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    return torch.zeros_like(hidden_states)
END

define k_prints_and_fails <<'END'
import sys


def run(hidden_states, weight):
    print("the words of the reference")
    print("its complaint", file=sys.stderr)
    return hidden_states * 0
END

verify --jobs 2
expect_exit 1
for name in a_honest_norm m_honest_norm z_honest_norm; do
	expect_status $name passed
done
for name in b_claims_to_have_passed c_patches_torch d_kills_its_neighbours e_makes_zeros_right \
	f_scribbles_over_the_arena g_answers_anew_each_time i_writes_past_its_output j_leaves_a_process_behind \
	k_prints_and_fails; do
	expect "d['$name']['status'] in ('failed', 'error')"
	expect "'passed' not in all_of('$name', 'status')"
done
# This reference returns its first output again in each later case, where this output is wrong.
expect_status h_remembers_the_first_answer failed
expect_status e_makes_zeros_right failed mutated_input
expect_status g_answers_anew_each_time failed nondeterministic
expect "all('the words of the reference' in (text or '') for text in all_of('k_prints_and_fails', 'printed'))"
expect "all('its complaint' in (text or '') for text in all_of('k_prints_and_fails', 'printed'))"
expect_no_process

# In text format, the report of a failure also shows the text that the reference printed.
run verify --device "$device" --sizes small --jobs 1 --force k_prints_and_fails
expect_exit 1
expect_says 'the words of the reference' 'its complaint'

# The stored verdicts of the correct definitions are right.
verify a_honest_norm m_honest_norm z_honest_norm
expect_exit 0
expect_ran 0
