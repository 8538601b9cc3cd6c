#!/bin/sh
# The gradients of flash-linear-attention's plain PyTorch implementations agree with those of the oracle. A library
# without gradients for an operation is skipped. If the gradients of ground truths differ, the message names the one
# that differs from all others.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "on a GPU flash-linear-attention runs its Triton kernels"
pytest_is_here # makes pytest available together with fla
given gdn_prefill_qk2_v4_d128_k_last
verify --backward --no-workloads --ground-truth all
expect_exit 0
# There are nine cases. Four of them compare outputs: one for each of two sizes, one without the state, and one with the
# scale 0. Each of these four has a gradient case. The ninth case runs in float64.
expect "len(c) == 9 and all(case['status'] == 'passed' for case in c.values())"
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
    q, k, v, g = (call[role].float() for role in ("q", "k", "v", "gate"))
    v = v.detach() if os.environ["PLANTED"] == "missing" else Planted.apply(v)
    total = g.cumsum(dim=1).transpose(1, 2)
    left = torch.exp((total[..., :, None] - total[..., None, :]).tril())
    scores = (torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5 * left).tril()
    output = torch.einsum("bhij,bjhd->bihd", scores, v)
    return call.outputs_of(output=output.detach() if os.environ["PLANTED"] == "detached" else output)


TABLES = (Table("torch", (Need(("torch",), "torch"),), {"simple_gla": Row(call, cpu=True)}),)
END
REFTEST_PROVIDERS=$work/tables
export REFTEST_PROVIDERS
case='small:batch_size=2,seq_len=81:backward'
for PLANTED in none detached; do
	export PLANTED
	verify --force --ground-truth torch,builtin --case $case
	expect_exit 0
	expect "all_of('simple_gla_parallel_h4_d64', 'ground_truth') == ['builtin']"
	expect "'it has no gradients for this case' in d['simple_gla_parallel_h4_d64']['cases'][0]['witnesses'][0]['passed_over']"
done
# A library that has no gradient for an input must not report a gradient of zeros instead. With such a gradient, a
# reference that wrongly omits the gradient would pass, and a correct reference would fail.
sed -e 's/"simple_gla_parallel_h4_d64"/"lost"/' definitions/simple_gla/simple_gla_parallel_h4_d64.json >definitions/simple_gla/lost.json
edit definitions/simple_gla/lost.json 'v.float()' 'v.detach().float()'
PLANTED=missing verify --force --ground-truth torch --case $case
expect_exit 3
for name in lost simple_gla_parallel_h4_d64; do
	expect_status $name skipped no_ground_truth
	expect "\"it has no gradient for input 'v'\" in d['$name']['cases'][0]['message']"
done
PLANTED=missing verify --force --ground-truth torch,builtin --case $case
expect_status simple_gla_parallel_h4_d64 passed
expect_status lost failed numeric
rm definitions/simple_gla/lost.json
PLANTED=wrong verify --force --ground-truth torch,builtin --case $case
expect_status simple_gla_parallel_h4_d64 failed # the reference is compared with torch, the first ground truth
expect "all_of('simple_gla_parallel_h4_d64', 'ground_truth') == ['torch']"
PLANTED=wrong verify --force --ground-truth all --case $case
expect_status simple_gla_parallel_h4_d64 failed ground_truths_disagree
expect "'torch' in d['simple_gla_parallel_h4_d64']['cases'][0]['message'] and 'd_v' in d['simple_gla_parallel_h4_d64']['cases'][0]['message']"

# Tests a gradient that is nearly 0. The gradient of A_log is a sum over all tokens and channels. With seed 7, the terms
# of this sum nearly cancel, so that the sum is smaller than the error that is allowed for it. A library that rounds the
# terms must still pass, and a library that omits a token must fail.
rm -r definitions/simple_gla
given kda_recurrent_lower_bound_h2_k64_v32
cat >"$work/tables/torch.py" <<END
import os

import torch
from reftest_providers import Need, Row, Table


class Rounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        sign = 2 * torch.randint(2, gradient.shape, generator=torch.Generator().manual_seed(7)) - 1
        return gradient * (1 + sign / 128)


class Forgets(Rounds):
    @staticmethod
    def backward(ctx, gradient):
        return torch.cat([gradient[:, :-1], torch.zeros_like(gradient[:, -1:])], 1)


def call(call):
    q, k, v, g, beta = (call[role].float() for role in ("q", "k", "v", "gate", "beta"))
    a_log = call["a_log"].expand(beta.shape)
    if os.environ["PLANTED"] == "forgets":
        a_log = Forgets.apply(a_log)
    gate = float(call["lower_bound"]) * torch.sigmoid(torch.exp(a_log)[..., None] * (g + call["dt_bias"]))
    gate = Rounds.apply(gate)
    state, outputs = 0, []
    for t in range(q.shape[1]):
        state = torch.exp(gate)[:, t, ..., None] * (state if t else torch.zeros(*q[:, 0].shape, v.shape[-1]))
        learnt = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], learnt)
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * q.shape[-1] ** -0.5, state))
    return call.outputs_of(output=torch.stack(outputs, 1))


TABLES = (Table("torch", (Need(("torch",), "torch"),), {"kda": Row(call, cpu=True, coarse={"output": (1e-3, 2e-2)})}),)
END
PLANTED=rounds verify --force --ground-truth all --case $case --seed 7
expect_exit 0
expect "[(o['margin'] > 0.05, o['atol'] > 0.1 * abs(o['worst'][0]['ground_truth'])) for o in d['kda_recurrent_lower_bound_h2_k64_v32']['cases'][0]['outputs'] if (o['name'], o['ground_truth']) == ('d_A_log', 'torch')] == [(True, True)]"
PLANTED=forgets verify --force --ground-truth all --case $case
expect_status kda_recurrent_lower_bound_h2_k64_v32 failed ground_truths_disagree
expect "'torch is the outlier' in d['kda_recurrent_lower_bound_h2_k64_v32']['cases'][0]['message'] and 'd_A_log' in d['kda_recurrent_lower_bound_h2_k64_v32']['cases'][0]['message']"
