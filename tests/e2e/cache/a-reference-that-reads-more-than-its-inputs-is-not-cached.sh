#!/bin/sh
# A reference may depend on more than its source, its inputs and torch: on a file, a module, an environment variable,
# the clock or another library. The verdict of such a reference is not stored, because reftest would not notice a change
# of the file or the module, for example. Therefore the reference is verified in every run. Before a reference runs,
# reftest searches its source for suspicious words, such as `open`. They show that the reference may depend on something
# other than its source, its inputs and torch. (The unit test test_pool_references tests that reftest also detects the
# files that Python opens.)
. "$(dirname "$0")/../harness.sh"
norm='    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps()) * weight.float()).to(hidden_states.dtype)'

# `changes FILE TEXT`: expects that the reference on standard input passes and is not cached, and that the reference
# fails once FILE contains TEXT.
changes() {
	define norm
	verify --changed
	expect_exit 0
	expect "s['cases_run'] > 0 and not any(all_of('norm', 'kept'))"
	expect_says "not cached" "$3"
	printf '%s\n' "$2" >"$1"
	verify --changed
	expect_exit 1
	expect "s['cases_run'] > 0"
	expect_status norm failed numeric
}

# References can only read files that belong to the system or to the interpreter. Folders of shared libraries belong to
# the system, so LD_LIBRARY_PATH lets references read $work/visible.
mkdir "$work/visible"
export LD_LIBRARY_PATH="$work/visible"

# The reference reads a file.
echo 1e-6 >"$work/visible/eps"
changes "$work/visible/eps" 1e-1 "'open'" <<P
import torch


def eps():
    return float(open("$work/visible/eps").read())


def run(hidden_states, weight):
$norm
P

# The reference imports a module outside the dataset. The reference disables byte code. Otherwise Python could run old
# byte code of the module after an edit within the same second.
echo 'EPS = 1e-6' >"$work/visible/helper.py"
changes "$work/visible/helper.py" 'EPS = 1e-1  # another' "'import sys'" <<P
import sys
import torch
sys.path.insert(0, "$work/visible")
sys.dont_write_bytecode = True
import helper


def eps():
    return helper.EPS


def run(hidden_states, weight):
$norm
P

# Each statement or expression below may read an environment variable, the clock, or something else outside the inputs.
# The test writes one definition for each of them. The clock and the name of the machine differ between runs. A
# reference that reads one of them gets at most the verdict "checked".
rm definitions/rmsnorm/norm.json
number=0
for word in 'import os' 'import time' 'import datetime' 'import platform' 'from time import time' 'import resource' \
	'__import__("time")' 'from random import _os' 'import numpy' 'import socket' 'import einops'; do
	number=$((number + 1))
	define "word$number" <<P
import torch


def other():
    $word


def eps():
    return 1e-6


def run(hidden_states, weight):
$norm
P
done
verify
expect_exit 3
expect "len(d) == 11 and s['cases_run'] == 22"
expect "{n for n in d if d[n]['status'] != 'passed'} == {n for n in d if d[n]['status'] == 'checked'} == {'word2', 'word3', 'word4', 'word5', 'word10'}"
expect "not any(case['kept'] for case in c.values())"
expect "all('not cached' in str(x['notes']) and 'line 5' in str(x['notes']) for x in d.values())"
verify --cached-only
expect_exit 3
expect "len(d) == 11 and not any(case['cached'] for case in c.values())"
rm definitions/rmsnorm/word*.json

# The verdict of a reference without a suspicious word is cached.
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
