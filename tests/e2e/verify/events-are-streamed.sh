#!/bin/sh
# verify --format jsonl prints each verdict as soon as the verdict is known, with the events and fields of watch --json.
# While a reference runs, the judge (a separate process) computes the ground truth.
. "$(dirname "$0")/../harness.sh"
with_gates
given tiny_gemm
define slow <<'P'
import torch


def run(hidden_states, weight):
    gate("started", "go")
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.1 * torch.matmul'
echo 0 >"$work/awaited"
export REFTEST_TRACE=1
begin verify --format jsonl --device "$device" --sizes small --jobs 1
unset REFTEST_TRACE
started
await "e['event'] == 'verdict'" # slow still runs
expect_events "e['name'] == 'tiny_gemm' and e['status'] == 'failed' and e['cases'][0]['reason'] == 'numeric'"
expect_events "e['batch'] == 1 and e['cases_run'] == 3"
ahead='judge: slow .*: builtin is computed while the reference runs'
for _ in $(seq 1500); do
	! grep -q "$ahead" "$work/err" || break
	sleep 0.02
done
grep -q "$ahead" "$work/err" || fail "the judge of a reference that runs does not compute its ground truth"
: >"$work/go"
ended
expect_exit 1
await "e['event'] == 'end'"
expect_events "[x['event'] for x in a if x['event'] != 'plan'] == ['verdict', 'batch', 'end']"
expect_events "a[-2]['failed'] == 1 and a[-2]['passed'] == 1 and a[-2]['cases_run'] > 3 and e['exit'] == 1"
cp "$work/out" "$work/verified"
[ "$(wc -l <"$work/out")" = 5 ] || fail "there are not five events: plan, two verdicts, batch, end"

# The watcher's events have the same fields.
run watch --json --once --device "$device" --sizes small --jobs 1
cp "$work/out" "$work/watched"
step='the fields of both'
expectations=$((expectations + 1))
"$python" -I -S - "$work/verified" "$work/watched" <<'P' || fail "the fields of the events differ"
import json, sys
fields = []
for path in sys.argv[1:]:
    events = [json.loads(line) for line in open(path)]
    fields.append({one["event"]: list(one) for one in events})
assert set(fields[0]) == {"plan", "verdict", "batch", "end"}, fields[0]
for name in fields[0]:
    assert fields[0][name] == fields[1][name], (name, fields)
P

# Stored verdicts are also printed as events. With --quiet, a definition whose stored verdicts are all "passed" is
# counted but not printed.
run verify --format jsonl --device "$device" --sizes small --jobs 1
expect_exit 1
expect_says '"name": "slow"' '"cases_run": 0'
run verify --format jsonl --device "$device" --sizes small --jobs 1 --quiet
expect_silence_about '"name": "slow"'
expect_says '"event": "batch"' '"passed": 1'
