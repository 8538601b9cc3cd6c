#!/bin/sh
# 7010: a definition that is saved again while its reference runs: the old run is given up, nothing is told of the old text,
# and what waited for the same case runs it itself. A save goes before what waits.
. "$(dirname "$0")/scene.sh"
with_gates
given tiny_gemm
watch
waits() { # the body of a reference that says that it runs, and waits for a word: $1 the word, $2 its epsilon
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
mv twin.json definitions/rmsnorm/twin_norm.json # waits behind the lane
await "e['event'] == 'plan'"
: >"$work/go"
waits go 1e-6 | define slow_norm
await "e['event'] == 'verdict'"
heard "e['name'] == 'slow_norm' and e['status'] == 'passed'"
heard "all(x['event'] != 'verdict' for x in a[:-1])"
started
rm definitions/rmsnorm/twin_norm.json # its run would last for ever
await "e['event'] == 'gone' and e['name'] == 'rmsnorm/twin_norm'"
await_batch
end_watch
verify
expect_exit 0
expect_ran 0
expect_status slow_norm passed
