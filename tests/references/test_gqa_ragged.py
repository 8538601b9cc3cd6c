# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 7725eae589a86061e3e9194def8d5838
"""Tests of definitions/gqa_ragged. conftest.py says how they run."""

import conftest


# definition: "gqa_ragged_prefill_causal_h10_kv2_d128"
class TestGqaRaggedPrefillCausalH10Kv2D128(conftest.DefinitionTests):
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_causal_h10_kv2_d128"
    FAMILY = "gqa_ragged"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    MODES = ("causal",)
    NUM_QO_HEADS = 10
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=64, len_indptr=5),
        conftest.size("medium", total_q=1025, total_kv=4097, len_indptr=514),
        conftest.size("medium", total_q=2560, total_kv=1536, len_indptr=257),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_queries", total_q=0, total_kv=3, len_indptr=3),
        conftest.edge("no_keys", total_q=5, total_kv=0, len_indptr=3),
        conftest.edge("blind_queries", total_q=5, total_kv=2, len_indptr=2),
        conftest.edge("one_of_each", total_q=1, total_kv=1, len_indptr=2),
        conftest.edge("many_keys", total_q=1, total_kv=81920, len_indptr=2),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.08838834764831843],
    )
    RULES = conftest.rules(
        [  # output
            (0.000244140625, 0.01, 1.0),
        ],
        [  # lse
            (0.0001220703125, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    num_qo_heads, head_dim = q.shape[1:]
    num_kv_heads = k.shape[1]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        num_q, num_kv = rows.stop - rows.start, keys.stop - keys.start
        if num_q == 0 or num_kv == 0:
            continue
        # Query heads that share a kv head are neighbours.
        queries = q[rows].float().view(num_q, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)
        logits = torch.einsum("qhgd,nhd->hgqn", queries, k[keys].float()) * sm_scale
        # The last query sees all keys, each one before it one less.
        seen = torch.ones(num_q, num_kv, dtype=torch.bool, device=q.device).tril(diagonal=num_kv - num_q)
        logits = logits.masked_fill(~seen, -math.inf)
        lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        weights = weights.masked_fill(~seen, 0)  # a query before the first key sees none
        output[rows] = torch.einsum("hgqn,nhd->qhgd", weights, v[keys].float()).flatten(1, 2).to(q.dtype)
    return output, lse
"""


# definition: "gqa_ragged_prefill_causal_h8_kv4_d256"
class TestGqaRaggedPrefillCausalH8Kv4D256(conftest.DefinitionTests):
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_causal_h8_kv4_d256"
    FAMILY = "gqa_ragged"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    MODES = ("causal",)
    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 4
    HEAD_DIM = 256
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=64, len_indptr=5),
        conftest.size("medium", total_q=1025, total_kv=4097, len_indptr=514),
        conftest.size("medium", total_q=2560, total_kv=1536, len_indptr=257),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_queries", total_q=0, total_kv=3, len_indptr=3),
        conftest.edge("no_keys", total_q=5, total_kv=0, len_indptr=3),
        conftest.edge("blind_queries", total_q=5, total_kv=2, len_indptr=2),
        conftest.edge("one_of_each", total_q=1, total_kv=1, len_indptr=2),
        conftest.edge("many_keys", total_q=1, total_kv=20480, len_indptr=2),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.0625],
    )
    RULES = conftest.rules(
        [  # output
            (0.000244140625, 0.01, 1.0),
        ],
        [  # lse
            (0.0001220703125, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    num_qo_heads, head_dim = q.shape[1:]
    num_kv_heads = k.shape[1]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        num_q, num_kv = rows.stop - rows.start, keys.stop - keys.start
        if num_q == 0 or num_kv == 0:
            continue
        # Query heads that share a kv head are neighbours.
        queries = q[rows].float().view(num_q, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)
        logits = torch.einsum("qhgd,nhd->hgqn", queries, k[keys].float()) * sm_scale
        # The last query sees all keys, each one before it one less.
        seen = torch.ones(num_q, num_kv, dtype=torch.bool, device=q.device).tril(diagonal=num_kv - num_q)
        logits = logits.masked_fill(~seen, -math.inf)
        lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        weights = weights.masked_fill(~seen, 0)  # a query before the first key sees none
        output[rows] = torch.einsum("hgqn,nhd->qhgd", weights, v[keys].float()).flatten(1, 2).to(q.dtype)
    return output, lse
"""


# definition: "gqa_ragged_prefill_h16_kv16_d80"
class TestGqaRaggedPrefillH16Kv16D80(conftest.DefinitionTests):
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_h16_kv16_d80"
    FAMILY = "gqa_ragged"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 16
    HEAD_DIM = 80
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=64, len_indptr=5),
        conftest.size("medium", total_q=1025, total_kv=4097, len_indptr=514),
        conftest.size("medium", total_q=2560, total_kv=256, len_indptr=257),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_queries", total_q=0, total_kv=3, len_indptr=3),
        conftest.edge("no_keys", total_q=5, total_kv=0, len_indptr=3),
        conftest.edge("one_of_each", total_q=1, total_kv=1, len_indptr=2),
        conftest.edge("many_keys", total_q=1, total_kv=20480, len_indptr=2),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.11180339887498948],
    )
    RULES = conftest.rules(
        [  # output
            (0.000244140625, 0.01, 1.0),
        ],
        [  # lse
            (0.0001220703125, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    group = q.shape[1] // k.shape[1]

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        if rows.start == rows.stop or keys.start == keys.stop:
            continue
        wide_k = k[keys].float().repeat_interleave(group, dim=1)
        wide_v = v[keys].float().repeat_interleave(group, dim=1)
        logits = torch.einsum("qhd,nhd->qhn", q[rows].float(), wide_k) * sm_scale
        lse[rows] = torch.logsumexp(logits, dim=-1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        output[rows] = torch.einsum("qhn,nhd->qhd", weights, wide_v).to(q.dtype)
    return output, lse
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
