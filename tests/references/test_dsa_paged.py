# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 8b94ad225dafee0ec753ea2ec3e14f25
"""Tests of definitions/dsa_paged. conftest.py says how they run."""

import conftest


# definition: "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
class TestDsaSparseAttentionH16Ckv512Kpe64Topk2048Ps64(conftest.DefinitionTests):
    OP_TYPE = "dsa_paged"
    NAME = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
    FAMILY = "dsa_paged"
    ROLES = conftest.constants(
        q="q_nope",
        q_pe="q_pe",
        k="ckv_cache",
        k_pe="kpe_cache",
        sparse="sparse_indices",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 16
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 64
    TOPK = 2048
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
        page_size=PAGE_SIZE,
        topk=TOPK,
        num_pages=None,
    )
    SIZES = (
        conftest.size("small", num_tokens=1, num_pages=50),
        conftest.size("small", num_tokens=8, num_pages=50),
        conftest.size("medium", num_tokens=513, num_pages=577),
        conftest.size("medium", num_tokens=256, num_pages=50),
        conftest.size("large", num_tokens=1024, num_pages=1026),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_queries", num_tokens=0, num_pages=1),
        conftest.edge("no_keys", num_tokens=1, num_pages=0),
        conftest.edge("one_of_each", num_tokens=1, num_pages=1),
        conftest.edge("many_keys", num_tokens=8, num_pages=1280),
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
def run(q_nope, q_pe, ckv_cache, kpe_cache, sparse_indices, sm_scale):
    latents = ckv_cache.flatten(0, 1)
    rotary = kpe_cache.flatten(0, 1)
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32, device=q_nope.device)

    for t in range(q_nope.shape[0]):
        slots = sparse_indices[t]
        slots = slots[slots >= 0].long()
        if len(slots) == 0:
            continue
        keys = latents[slots].float()
        logits = (q_nope[t].float() @ keys.T + q_pe[t].float() @ rotary[slots].float().T) * sm_scale
        lse[t] = torch.logsumexp(logits, dim=-1) / math.log(2)
        output[t] = (torch.softmax(logits, dim=-1) @ keys).to(q_nope.dtype)
    return output, lse
"""


# definition: "dsa_sparse_attention_h32_ckv512_kpe64_topk2048_ps1"
class TestDsaSparseAttentionH32Ckv512Kpe64Topk2048Ps1(conftest.DefinitionTests):
    OP_TYPE = "dsa_paged"
    NAME = "dsa_sparse_attention_h32_ckv512_kpe64_topk2048_ps1"
    FAMILY = "dsa_paged"
    ROLES = conftest.constants(
        q="q_nope",
        q_pe="q_pe",
        k="ckv_cache",
        k_pe="kpe_cache",
        sparse="sparse_indices",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 32
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1
    TOPK = 2048
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
        page_size=PAGE_SIZE,
        topk=TOPK,
        num_pages=None,
    )
    SIZES = (
        conftest.size("small", num_tokens=1, num_pages=3074),
        conftest.size("small", num_tokens=8, num_pages=3074),
        conftest.size("medium", num_tokens=513, num_pages=36928),
        conftest.size("medium", num_tokens=256, num_pages=3074),
        conftest.size("large", num_tokens=1024, num_pages=65538),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_queries", num_tokens=0, num_pages=1),
        conftest.edge("no_keys", num_tokens=1, num_pages=0),
        conftest.edge("one_of_each", num_tokens=1, num_pages=1),
        conftest.edge("many_keys", num_tokens=8, num_pages=81920),
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
def run(q_nope, q_pe, ckv_cache, kpe_cache, sparse_indices, sm_scale):
    latents = ckv_cache.flatten(0, 1)
    rotary = kpe_cache.flatten(0, 1)
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32, device=q_nope.device)

    for t in range(q_nope.shape[0]):
        slots = sparse_indices[t]
        slots = slots[slots >= 0].long()
        if len(slots) == 0:
            continue
        keys = latents[slots].float()
        logits = (q_nope[t].float() @ keys.T + q_pe[t].float() @ rotary[slots].float().T) * sm_scale
        lse[t] = torch.logsumexp(logits, dim=-1) / math.log(2)
        output[t] = (torch.softmax(logits, dim=-1) @ keys).to(q_nope.dtype)
    return output, lse
"""


# definition: "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
class TestDsaTopkIndexerFp8H64D128Topk2048Ps64(conftest.DefinitionTests):
    OP_TYPE = "dsa_paged"
    NAME = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
    FAMILY = "dsa_paged"
    ROLES = conftest.constants(
        query="q_index_fp8",
        cache="k_index_cache_fp8",
        weights="weights",
        lengths="seq_lens",
        table="block_table",
    )
    OUTPUT_ROLES = conftest.constants(
        indices="topk_indices",
    )
    MODES = ("indexer",)
    NUM_INDEX_HEADS = 64
    INDEX_HEAD_DIM = 128
    PAGE_SIZE = 64
    TOPK = 2048
    KV_CACHE_NUM_HEADS = 1
    HEAD_DIM_WITH_SCALE = 132
    AXES = conftest.constants(
        batch_size=None,
        num_index_heads=NUM_INDEX_HEADS,
        index_head_dim=INDEX_HEAD_DIM,
        page_size=PAGE_SIZE,
        topk=TOPK,
        max_num_pages=None,
        num_pages=None,
        kv_cache_num_heads=KV_CACHE_NUM_HEADS,
        head_dim_with_scale=HEAD_DIM_WITH_SCALE,
    )
    SIZES = (
        conftest.size("small", batch_size=1, max_num_pages=41, num_pages=63),
        conftest.size("small", batch_size=5, max_num_pages=41, num_pages=63),
        conftest.size("medium", batch_size=513, max_num_pages=65, num_pages=577),
        conftest.size("medium", batch_size=256, max_num_pages=41, num_pages=63),
        conftest.size("large", batch_size=64, max_num_pages=513, num_pages=771),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, max_num_pages=41, num_pages=63),
        conftest.edge("empty_sequences", batch_size=3, max_num_pages=41, num_pages=63),
        conftest.edge("few_keys", batch_size=3, max_num_pages=41, num_pages=63),
        conftest.edge("equal_scores", batch_size=3, max_num_pages=41, num_pages=63),
        conftest.edge("long_sequence", batch_size=1, max_num_pages=641, num_pages=963),
    )
    RULES = conftest.rules(
        None,  # topk_indices: reftest's kernels judge it
    )
    REFERENCE = """\
import torch


def scored_keys(octets, page_size, head_dim):
    \"\"\"A page holds all its keys first, then all their scales: [keys of the page, head_dim] float32.\"\"\"
    pages = octets.view(torch.uint8).flatten(1)
    keys = pages[:, : page_size * head_dim].contiguous().view(torch.float8_e4m3fn)
    scales = pages[:, page_size * head_dim :].contiguous().view(torch.float32)
    return (keys.float().view(-1, page_size, head_dim) * scales.unsqueeze(-1)).flatten(0, 1)


@torch.no_grad()
def run(q_index_fp8, k_index_cache_fp8, weights, seq_lens, block_table):
    head_dim, page_size, chosen = q_index_fp8.shape[-1], k_index_cache_fp8.shape[1], 2048
    output = torch.full((len(seq_lens), chosen), -1, dtype=torch.int32, device=q_index_fp8.device)

    for i, length in enumerate(seq_lens.tolist()):
        if length == 0:
            continue
        pages = block_table[i, : -(-length // page_size)].long()
        keys = scored_keys(k_index_cache_fp8[pages], page_size, head_dim)[:length]
        scores = weights[i] @ torch.relu(q_index_fp8[i].float() @ keys.T)
        best = torch.topk(scores, min(chosen, length)).indices
        output[i, : len(best)] = (pages[best // page_size] * page_size + best % page_size).int()
    return (output,)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
