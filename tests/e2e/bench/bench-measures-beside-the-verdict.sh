#!/bin/sh
# `reftest bench` measures the latencies of the reference and of each ground truth that ran. It shows the latencies
# beside the verdict, and stores them. The verdicts are the same as those of `verify`. `bench` does not store verdicts,
# and the measured calls do not change them.
. "$(dirname "$0")/../harness.sh"
# For the latencies, reftest starts its own interpreters, as it does for users, and not those that the tests share.
runner=${REFTEST_RUNNER:-} provider=${REFTEST_PROVIDER:-}
own_interpreters
export REFTEST_PYTHON="$python"
define fast <<P
import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * scale * weight.to(torch.float32)).to(torch.bfloat16)
P
define wrong <<P
import torch

def run(hidden_states, weight):
    return hidden_states * weight
P
# This reference counts its calls, and fails from the fourth call on. A verdict needs two or three calls, and a latency
# needs more. So the reference gets a verdict but no latency.
define tired <<P
import torch

calls = []

def run(hidden_states, weight):
    calls.append(1)
    if len(calls) > 3:
        raise ValueError("tired")
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * scale * weight.to(torch.float32)).to(torch.bfloat16)
P
# Takes 30 ms a call.
define slow <<P
import time
import torch

def run(hidden_states, weight):
    time.sleep(0.03)
    x = hidden_states.to(torch.float32)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (x * scale * weight.to(torch.float32)).to(torch.bfloat16)
P
bench() { run bench --device "$device" --sizes small --format json "$@"; }

# A reference that may read the clock gets at most the verdict "checked".
bench fast slow --accept checked
expect_exit 0
expect "all(case['status'] == 'passed' for case in d['fast']['cases'])"
# The first latency is that of the reference. The second is that of the ground truth `builtin`, which ran once per case.
expect "all([one['name'] for one in case['latencies']] == ['reference', 'builtin'] for case in d['fast']['cases'])"
expect "all(case['latencies'][1]['warm']['runs'] == 1 for case in d['fast']['cases'])"
expect "all(0 < one['warm']['low'] <= one['warm']['median'] <= one['warm']['high'] < 120 for name in d for case in d[name]['cases'] for one in case['latencies'])"
# The next expectation fails if the clock runs backwards or counts something other than time.
expect "all(case['latencies'][0]['warm']['median'] >= 0.03 for case in d['slow']['cases'])"
expect "all(3 <= case['latencies'][0]['warm']['runs'] <= 50 for name in d for case in d[name]['cases'])"
if [ "$device" = cpu ]; then
	expect "all(one['timer'] == 'wall' and one['cold'] is None for name in d for case in d[name]['cases'] for one in case['latencies'])"
else
	expect "all(case['latencies'][0]['timer'] == 'cuda_events' and case['latencies'][0]['cold']['median'] > 0 for name in d for case in d[name]['cases'])"
fi

# A ground truth other than `builtin` is measured in its own process.
bench fast --ground-truth all
expect_exit 0
expect "all(len({one['name'] for one in case['latencies']} - {'reference', 'builtin'}) > 0 for case in d['fast']['cases'])"
expect "all(one['warm']['runs'] >= 3 for case in d['fast']['cases'] for one in case['latencies'] if one['name'] != 'builtin')"

[ -z "$runner" ] || export REFTEST_RUNNER="$runner" REFTEST_PROVIDER="$provider"

# A wrong reference fails, as it does with verify. A reference that fails only while it is measured still gets its
# verdict, but no latency.
bench wrong tired
expect_exit 1
expect_status wrong failed numeric
expect "all(case['status'] == 'passed' and [one['name'] for one in case['latencies']] == ['builtin'] for case in d['tired']['cases'][:1])"

# `bench` stored the latencies, but no verdict.
run verify --cached-only --device "$device" --sizes small fast
expect_exit 3
expectations=$((expectations + 1))
"$python" -I -S -c '
import json
lines = [json.loads(line) for line in open(".reftest/bench.jsonl")]
names = {line["name"] for line in lines}
assert {"fast", "slow"} <= names, names
assert all(line["op_type"] == "rmsnorm" and line["time"] > 1e9 and line["case"]["latencies"] and line["case"]["status"] for line in lines), lines
' 2>"$work/python" || fail "the figures were not kept: $(tail -n 1 "$work/python")"

# The verdicts of verify have no latencies.
run verify --format json --device "$device" --sizes small --jobs 1 fast
expect_exit 0
expect "all('latencies' not in case for case in d['fast']['cases'])"

# Tests the output in text format.
run bench --device "$device" --sizes small fast
expect_exit 0
grep -q '^ *reference .*warm .* runs)' "$work/out" || fail "no figure in the text"

# For --fib, flashinfer-bench is first missing, then installed, and finally replaced by one that fails.
run bench --device "$device" --sizes small fast --fib
expect_exit 0
grep -q "^reftest: flashinfer-bench is not installed in .*python.*, so only reftest's figures are shown$" "$work/err" ||
	fail "the missing flashinfer-bench is not reported"
mkdir -p "$work/packages/flashinfer_bench/cli"
touch "$work/packages/flashinfer_bench/__init__.py" "$work/packages/flashinfer_bench/cli/__init__.py"
cat >"$work/packages/flashinfer_bench/cli/main.py" <<'P'
import os
import sys


def cli():
    print("fib:", *sys.argv)
    return int(os.environ.get("FIB_STATUS", 0))
P
export PYTHONPATH="$work/packages${PYTHONPATH:+:$PYTHONPATH}"
run bench --device "$device" --sizes small fast --fib
expect_exit 0
grep -q '^fib: flashinfer-bench run --no-save-results --local .* --definitions fast$' "$work/out" || fail "flashinfer-bench did not run"
grep -q 'flashinfer-bench' "$work/err" && fail "a run without faults is reported"
export FIB_STATUS=7
run bench --device "$device" --sizes small fast --fib
expect_exit 0
grep -q '^reftest: flashinfer-bench ended with status 7$' "$work/err" || fail "the failure is not reported"
run bench --device "$device" --sizes small fast --fib --format json
expect_exit 2
run bench --device "$device" nothing
expect_exit 2
run bench --timeout 0
expect_exit 2
