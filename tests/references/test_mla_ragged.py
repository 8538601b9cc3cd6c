# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: e70c8828db1c9eda32d87096cf920a06
"""Tests of definitions/mla_ragged. conftest.py says how they run."""

import conftest


# definition: "mla_ragged_prefill_causal_h8_qk192_vo128"
class TestMlaRaggedPrefillCausalH8Qk192Vo128(conftest.DefinitionTests):
    OP_TYPE = "mla_ragged"
    NAME = "mla_ragged_prefill_causal_h8_qk192_vo128"
    FAMILY = "mla_ragged"
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
    NUM_KV_HEADS = 8
    QK_DIM = 192
    VO_DIM = 128
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        qk_dim=QK_DIM,
        vo_dim=VO_DIM,
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
        sm_scale=[0.07216878364870323],
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
    total_q, num_heads, _ = q.shape
    output = torch.zeros(total_q, num_heads, v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.full((total_q, num_heads), -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        num_q, num_kv = rows.stop - rows.start, keys.stop - keys.start
        if num_q == 0 or num_kv == 0:
            continue
        logits = torch.einsum("qhd,nhd->hqn", q[rows].float(), k[keys].float()) * sm_scale
        # Query j stands at key num_kv - num_q + j and sees up to there.
        places = torch.arange(num_q, device=q.device) + num_kv - num_q
        unseen = torch.arange(num_kv, device=q.device) > places[:, None]
        logits = logits.masked_fill(unseen, -math.inf)
        lse[rows] = torch.logsumexp(logits, dim=-1).T / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        weights = weights.masked_fill(unseen, 0)  # a query before the first key sees none
        output[rows] = torch.einsum("hqn,nhd->qhd", weights, v[keys].float()).to(q.dtype)
    return output, lse
"""


# definition: "mla_ragged_prefill_h16_qk192_vo128"
class TestMlaRaggedPrefillH16Qk192Vo128(conftest.DefinitionTests):
    OP_TYPE = "mla_ragged"
    NAME = "mla_ragged_prefill_h16_qk192_vo128"
    FAMILY = "mla_ragged"
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
    QK_DIM = 192
    VO_DIM = 128
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        qk_dim=QK_DIM,
        vo_dim=VO_DIM,
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
        conftest.edge("many_keys", total_q=1, total_kv=10240, len_indptr=2),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.07216878364870323],
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
    total_q, num_heads, _ = q.shape
    output = torch.zeros(total_q, num_heads, v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.full((total_q, num_heads), -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        if rows.start == rows.stop or keys.start == keys.stop:
            continue
        # Head by head: [heads, queries, dim] times [heads, dim, keys]
        logits = q[rows].float().transpose(0, 1) @ k[keys].float().permute(1, 2, 0) * sm_scale
        lse[rows] = torch.logsumexp(logits, dim=-1).T / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        output[rows] = (weights @ v[keys].float().transpose(0, 1)).transpose(0, 1).to(q.dtype)
    return output, lse
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
