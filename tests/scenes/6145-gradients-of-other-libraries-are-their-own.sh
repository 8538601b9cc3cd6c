#!/bin/sh
# 6145: gradients through the plain PyTorch forms of flash-linear-attention agree with the oracle's. A library that has none
# of an operation is passed over; of two that differ it is said which stands alone.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "on a GPU its Triton kernels run"
pytest_is_here # and fla beside it
given gdn_prefill_qk2_v4_d128_k_last
verify --backward --no-workloads --ground-truth all
expect_exit 0
expect "len(c) == 5 and all(case['status'] == 'passed' for case in c.values())"
expect "all([w['name'] for w in case['witnesses']] == ([] if id[1].startswith('float64:') else ['fla', 'builtin']) for id, case in c.items())"
expect "all(w['passed_over'] is None for case in c.values() for w in case['witnesses'])"
expect "all(('d_A_log', 'fla') in [(o['name'], o['ground_truth']) for o in case['outputs']] for id, case in c.items() if id[1].startswith('small:') and id[1].endswith(':backward'))"

rm -r definitions/gdn
given simple_gla_parallel_h4_d64
mkdir "$work/tables"
cat >"$work/tables/torch.py" <<END
import os

import torch
from reftest_providers import Need, Row, Table


class Planted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if os.environ["PLANTED"] == "none":
            raise NotImplementedError("planted: inference alone")
        return 2 * gradient


def call(call):
    q, k, v, g = (call[name].float() for name in "qkvg")
    v = v.detach() if os.environ["PLANTED"] == "missing" else Planted.apply(v)
    total = g.cumsum(dim=1).transpose(1, 2)
    left = torch.exp((total[..., :, None] - total[..., None, :]).tril())
    scores = (torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5 * left).tril()
    output = torch.einsum("bhij,bjhd->bihd", scores, v)
    return call.cut(output.detach() if os.environ["PLANTED"] == "detached" else output)


TABLES = (Table("torch", (Need(("torch",), "torch"),), {"simple_gla": Row(call, cpu=True)}),)
END
REFTEST_PROVIDERS=$work/tables
export REFTEST_PROVIDERS
case='small:batch_size=3,seq_len=5:backward'
for PLANTED in none detached; do
	export PLANTED
	verify --force --ground-truth torch,builtin --case $case
	expect_exit 0
	expect "all_of('simple_gla_parallel_h4_d64', 'ground_truth') == ['builtin']"
	expect "'it has no gradients of this' in d['simple_gla_parallel_h4_d64']['cases'][0]['witnesses'][0]['passed_over']"
done
# One that knows no gradient of some input has not said that it is zero: alone, it would agree with every reference that lost
# that gradient, and be told against those that have it.
sed -e 's/"simple_gla_parallel_h4_d64"/"lost"/' definitions/simple_gla/simple_gla_parallel_h4_d64.json >definitions/simple_gla/lost.json
edit definitions/simple_gla/lost.json 'v.float()' 'v.detach().float()'
PLANTED=missing verify --force --ground-truth torch --case $case
expect_exit 3
for name in lost simple_gla_parallel_h4_d64; do
	expect_status $name skipped no_ground_truth
	expect "\"it has no gradient of input 'v'\" in d['$name']['cases'][0]['message']"
done
PLANTED=missing verify --force --ground-truth torch,builtin --case $case
expect_status simple_gla_parallel_h4_d64 passed
expect_status lost failed numeric
rm definitions/simple_gla/lost.json
PLANTED=wrong verify --force --ground-truth torch,builtin --case $case
expect_status simple_gla_parallel_h4_d64 failed # alone it decides, and says so
expect "all_of('simple_gla_parallel_h4_d64', 'ground_truth') == ['torch']"
PLANTED=wrong verify --force --ground-truth all --case $case
expect_status simple_gla_parallel_h4_d64 failed ground_truths_disagree
expect "'torch' in d['simple_gla_parallel_h4_d64']['cases'][0]['message'] and 'd_v' in d['simple_gla_parallel_h4_d64']['cases'][0]['message']"
