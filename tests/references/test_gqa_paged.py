# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: c4413b3929e48810d641f7a1d8b0a54f
"""Tests of definitions/gqa_paged. conftest.py says how they run."""

import conftest


# definition: "gqa_paged_decode_h28_kv4_d128_ps1"
class TestGqaPagedDecodeH28Kv4D128Ps1(conftest.DefinitionTests):
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_decode_h28_kv4_d128_ps1"
    FAMILY = "gqa_paged"
    ROLES = conftest.constants(
        q="q",
        k="k_cache",
        v="v_cache",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 28
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 1
    AXES = conftest.constants(
        batch_size=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        num_pages=None,
        page_size=PAGE_SIZE,
        len_indptr=None,
        num_kv_indices=None,
    )
    SIZES = (
        conftest.size(
            "small",
            batch_size=1,
            num_pages=44,
            len_indptr=2,
            num_kv_indices=33,
        ),
        conftest.size(
            "small",
            batch_size=4,
            num_pages=78,
            len_indptr=5,
            num_kv_indices=60,
        ),
        conftest.size(
            "medium",
            batch_size=513,
            num_pages=36928,
            len_indptr=514,
            num_kv_indices=4353,
        ),
        conftest.size(
            "medium",
            batch_size=256,
            num_pages=323,
            len_indptr=257,
            num_kv_indices=256,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=163843,
            len_indptr=65,
            num_kv_indices=131072,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_queries",
            batch_size=0,
            num_pages=1,
            len_indptr=1,
            num_kv_indices=0,
        ),
        conftest.edge(
            "no_keys",
            batch_size=3,
            num_pages=1,
            len_indptr=4,
            num_kv_indices=0,
        ),
        conftest.edge(
            "one_of_each",
            batch_size=1,
            num_pages=1,
            len_indptr=2,
            num_kv_indices=1,
        ),
        conftest.edge(
            "many_keys",
            batch_size=1,
            num_pages=40961,
            len_indptr=2,
            num_kv_indices=40960,
        ),
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
def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    group = q.shape[1] // k_cache.shape[2]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    bounds = kv_indptr.tolist()

    for i, (first, end) in enumerate(zip(bounds[:-1], bounds[1:])):
        if end > first:
            # A page is one key. [heads, keys, head_dim], each kv head as often as it has query heads.
            slots = kv_indices[first:end].long()
            keys = k_cache[slots, 0].float().transpose(0, 1).repeat_interleave(group, dim=0)
            values = v_cache[slots, 0].float().transpose(0, 1).repeat_interleave(group, dim=0)
            logits = (keys @ q[i].float().unsqueeze(-1)).squeeze(-1) * sm_scale
            lse[i] = torch.logsumexp(logits, dim=-1) / math.log(2)
            weights = torch.softmax(logits, dim=-1)
            output[i] = (weights.unsqueeze(1) @ values).squeeze(1).to(q.dtype)
    return output, lse
"""


# definition: "gqa_paged_decode_h40_kv8_d128_ps16"
class TestGqaPagedDecodeH40Kv8D128Ps16(conftest.DefinitionTests):
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_decode_h40_kv8_d128_ps16"
    FAMILY = "gqa_paged"
    ROLES = conftest.constants(
        q="q",
        k="k_cache",
        v="v_cache",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        last_page_len="kv_last_page_len",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    PAGE_SIZE = 16
    AXES = conftest.constants(
        batch_size=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        num_pages=None,
        page_size=PAGE_SIZE,
        len_indptr=None,
        num_kv_indices=None,
    )
    SIZES = (
        conftest.size(
            "small",
            batch_size=1,
            num_pages=6,
            len_indptr=2,
            num_kv_indices=3,
        ),
        conftest.size(
            "small",
            batch_size=4,
            num_pages=11,
            len_indptr=5,
            num_kv_indices=7,
        ),
        conftest.size(
            "medium",
            batch_size=513,
            num_pages=355,
            len_indptr=514,
            num_kv_indices=282,
        ),
        conftest.size(
            "medium",
            batch_size=256,
            num_pages=23,
            len_indptr=257,
            num_kv_indices=16,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=10318,
            len_indptr=65,
            num_kv_indices=8252,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_queries",
            batch_size=0,
            num_pages=1,
            len_indptr=1,
            num_kv_indices=0,
        ),
        conftest.edge(
            "no_keys",
            batch_size=3,
            num_pages=1,
            len_indptr=4,
            num_kv_indices=0,
        ),
        conftest.edge(
            "one_of_each",
            batch_size=1,
            num_pages=1,
            len_indptr=2,
            num_kv_indices=1,
        ),
        conftest.edge(
            "many_keys",
            batch_size=1,
            num_pages=1281,
            len_indptr=2,
            num_kv_indices=1280,
        ),
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
def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    batch_size, num_qo_heads, head_dim = q.shape
    page_size, num_kv_heads = k_cache.shape[1:3]
    output = torch.zeros_like(q)
    lse = torch.full((batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q.device)

    for i in range(batch_size):
        first, end = kv_indptr[i].item(), kv_indptr[i + 1].item()
        if first == end:
            continue
        pages = kv_indices[first:end].long()
        length = (end - first - 1) * page_size + kv_last_page_len[i].item()
        keys = k_cache[pages].flatten(0, 1)[:length].float()
        values = v_cache[pages].flatten(0, 1)[:length].float()

        # Neighbouring query heads share a kv head.
        queries = q[i].float().view(num_kv_heads, -1, head_dim)
        logits = torch.einsum("hgd,nhd->hgn", queries, keys) * sm_scale
        lse[i] = torch.logsumexp(logits, dim=-1).flatten() / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        output[i] = torch.einsum("hgn,nhd->hgd", weights, values).reshape(num_qo_heads, head_dim).to(q.dtype)
    return output, lse
"""


# definition: "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
class TestGqaPagedPrefillCausalH16Kv4D128Ps16(conftest.DefinitionTests):
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
    FAMILY = "gqa_paged"
    ROLES = conftest.constants(
        q="q",
        k="k_cache",
        v="v_cache",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        last_page_len="kv_last_page_len",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    MODES = ("causal",)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    PAGE_SIZE = 16
    AXES = conftest.constants(
        total_q=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        num_pages=None,
        page_size=PAGE_SIZE,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
    )
    SIZES = (
        conftest.size(
            "small",
            total_q=16,
            num_pages=6,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=3,
        ),
        conftest.size(
            "small",
            total_q=16,
            num_pages=11,
            batch_size=4,
            len_indptr=5,
            num_kv_indices=7,
        ),
        conftest.size(
            "medium",
            total_q=1025,
            num_pages=343,
            batch_size=513,
            len_indptr=514,
            num_kv_indices=272,
        ),
        conftest.size(
            "medium",
            total_q=2560,
            num_pages=109,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=85,
        ),
        conftest.size(
            "large",
            total_q=4096,
            num_pages=1291,
            batch_size=8,
            len_indptr=9,
            num_kv_indices=1031,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_queries",
            total_q=0,
            num_pages=4,
            batch_size=2,
            len_indptr=3,
            num_kv_indices=3,
        ),
        conftest.edge(
            "no_keys",
            total_q=5,
            num_pages=1,
            batch_size=2,
            len_indptr=3,
            num_kv_indices=0,
        ),
        conftest.edge(
            "blind_queries",
            total_q=20,
            num_pages=2,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=1,
        ),
        conftest.edge(
            "one_of_each",
            total_q=1,
            num_pages=1,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=1,
        ),
        conftest.edge(
            "many_keys",
            total_q=1,
            num_pages=2561,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=2560,
        ),
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

CHUNK = 512  # queries that are computed at once


@torch.no_grad()
def run(q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    num_qo_heads, head_dim = q.shape[1:]
    page_size, num_kv_heads = k_cache.shape[1:3]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        begin, stop = qo_indptr[i].item(), qo_indptr[i + 1].item()
        first, end = kv_indptr[i].item(), kv_indptr[i + 1].item()
        if begin == stop or first == end:
            continue
        pages = kv_indices[first:end].long()
        length = (end - first - 1) * page_size + kv_last_page_len[i].item()
        keys = k_cache[pages].flatten(0, 1)[:length].float()
        values = v_cache[pages].flatten(0, 1)[:length].float()

        # The last query stands at the last key.
        places = torch.arange(stop - begin, device=q.device) + length - (stop - begin)
        for start in range(begin, stop, CHUNK):
            rows = slice(start, min(start + CHUNK, stop))
            seen = torch.arange(length, device=q.device) <= places[rows.start - begin : rows.stop - begin, None]
            queries = q[rows].float().view(-1, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)
            logits = torch.einsum("qhgd,nhd->qhgn", queries, keys) * sm_scale
            logits = logits.masked_fill(~seen[:, None, None, :], -math.inf)
            lse[rows] = torch.logsumexp(logits, dim=-1).flatten(1) / math.log(2)
            weights = torch.softmax(logits, dim=-1)
            weights = weights.masked_fill(~seen[:, None, None, :], 0)  # a query before the first key sees none
            output[rows] = torch.einsum("qhgn,nhd->qhgd", weights, values).flatten(1, 2).to(q.dtype)
    return output, lse
"""


# definition: "gqa_paged_prefill_h20_kv20_d64_ps1"
class TestGqaPagedPrefillH20Kv20D64Ps1(conftest.DefinitionTests):
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_prefill_h20_kv20_d64_ps1"
    FAMILY = "gqa_paged"
    ROLES = conftest.constants(
        q="q",
        k="k_cache",
        v="v_cache",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 20
    HEAD_DIM = 64
    PAGE_SIZE = 1
    AXES = conftest.constants(
        total_q=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        num_pages=None,
        page_size=PAGE_SIZE,
        len_indptr=None,
        num_kv_indices=None,
    )
    SIZES = (
        conftest.size(
            "small",
            total_q=16,
            num_pages=44,
            len_indptr=2,
            num_kv_indices=33,
        ),
        conftest.size(
            "small",
            total_q=16,
            num_pages=83,
            len_indptr=5,
            num_kv_indices=64,
        ),
        conftest.size(
            "medium",
            total_q=1025,
            num_pages=6145,
            len_indptr=514,
            num_kv_indices=4097,
        ),
        conftest.size(
            "medium",
            total_q=2560,
            num_pages=323,
            len_indptr=257,
            num_kv_indices=256,
        ),
        conftest.size(
            "large",
            total_q=4096,
            num_pages=20483,
            len_indptr=9,
            num_kv_indices=16384,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_queries",
            total_q=0,
            num_pages=4,
            len_indptr=3,
            num_kv_indices=3,
        ),
        conftest.edge(
            "no_keys",
            total_q=5,
            num_pages=1,
            len_indptr=3,
            num_kv_indices=0,
        ),
        conftest.edge(
            "one_of_each",
            total_q=1,
            num_pages=1,
            len_indptr=2,
            num_kv_indices=1,
        ),
        conftest.edge(
            "many_keys",
            total_q=1,
            num_pages=20481,
            len_indptr=2,
            num_kv_indices=20480,
        ),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.125],
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
def run(q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, sm_scale):
    group = q.shape[1] // k_cache.shape[2]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        slots = kv_indices[kv_indptr[i].item() : kv_indptr[i + 1].item()].long()
        if rows.start == rows.stop or len(slots) == 0:
            continue
        keys = k_cache[slots, 0].float().repeat_interleave(group, dim=1)
        values = v_cache[slots, 0].float().repeat_interleave(group, dim=1)
        logits = torch.einsum("qhd,nhd->qhn", q[rows].float(), keys) * sm_scale
        lse[rows] = torch.logsumexp(logits, dim=-1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        output[rows] = torch.einsum("qhn,nhd->qhd", weights, values).to(q.dtype)
    return output, lse
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
