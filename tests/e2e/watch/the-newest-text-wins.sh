#!/bin/sh
# If a definition is saved again while its reference runs, the old run is cancelled and nothing about the old content is
# reported. If another definition with the same reference waited for the result of the cancelled run, reftest runs the
# case for this other definition. The cases of a definition that was just saved run before all cases that are already
# queued.
. "$(dirname "$0")/../harness.sh"
with_gates
given tiny_gemm
watch
waits() { # waits FILE EPSILON: prints the body of a reference that signals its start and waits until FILE exists
	cat <<END
import torch


def run(hidden_states, weight):
    gate("$work/started", "$work/$1")
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + $2)
    return (normed * weight.float()).to(hidden_states.dtype)
END
}
waits never 1e-4 | define slow_norm
started
sed 's/slow_norm/twin_norm/' definitions/rmsnorm/slow_norm.json >twin.json
mv twin.json definitions/rmsnorm/twin_norm.json # twin_norm waits for a free lane
await "e['event'] == 'plan'"
: >"$work/go"
waits go 1e-6 | define slow_norm
await "e['event'] == 'verdict'"
expect_events "e['name'] == 'slow_norm' and e['status'] == 'passed'"
expect_events "all(x['event'] != 'verdict' for x in a[:-1])"
started
rm definitions/rmsnorm/twin_norm.json # the run of the old text would last forever
await "e['event'] == 'gone' and e['name'] == 'rmsnorm/twin_norm'"
await_batch
end_watch
verify
expect_exit 0
expect_ran 0
expect_status slow_norm passed
