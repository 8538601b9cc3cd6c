#!/bin/sh
# 3090: a reference that may depend on more than its text, its inputs and torch (a file, a module, an environment variable, the
# clock, another library) is verified and told, and verified anew the next time: what changed meanwhile is noticed. Words that
# may reach outside are looked for before it runs. (What Python is then seen to open, test_pool_references holds.)
. "$(dirname "$0")/scene.sh"
norm='    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps()) * weight.float()).to(hidden_states.dtype)'

# changes FILE TEXT: the reference on standard input passes, and is not kept; once FILE holds TEXT, it fails
changes() {
	define norm
	verify --changed
	expect_exit 0
	expect "s['cases_run'] > 0 and not any(all_of('norm', 'kept'))"
	expect_says "not remembered" "$3"
	printf '%s\n' "$2" >"$1"
	verify --changed
	expect_exit 1
	expect "s['cases_run'] > 0"
	expect_status norm failed numeric
}

# A file
echo 1e-6 >"$work/eps"
changes "$work/eps" 1e-1 "'open'" <<P
import torch


def eps():
    return float(open("$work/eps").read())


def run(hidden_states, weight):
$norm
P

# A module beside the dataset; of its byte code nothing is kept, which would hide an edit within the same second
mkdir "$work/modules"
echo 'EPS = 1e-6' >"$work/modules/helper.py"
changes "$work/modules/helper.py" 'EPS = 1e-1  # another' "'import sys'" <<P
import sys
import torch
sys.path.insert(0, "$work/modules")
sys.dont_write_bytecode = True
import helper


def eps():
    return helper.EPS


def run(hidden_states, weight):
$norm
P

# What an environment variable or the clock says
for word in 'import os' 'import time' 'from random import _os' 'import numpy' 'import socket' 'import einops'; do
	define norm <<P
import torch


def other():
    $word


def eps():
    return 1e-6


def run(hidden_states, weight):
$norm
P
	verify
	expect_exit 0
	expect "not any(all_of('norm', 'kept'))"
	expect_says "not remembered" "line 5"
	verify --cached-only
	expect_exit 3
done

# Once it is written without, it is remembered.
define norm <<P
import math
import torch


def eps():
    return math.pow(10, -6)


def run(hidden_states, weight):
$norm
P
verify
expect_exit 0
expect "all(all_of('norm', 'kept'))"
expect_nothing_to_do
