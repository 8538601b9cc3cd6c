# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: eb5a442b4c60be082e1c549e722a34c5
"""Tests of definitions/mla_paged. conftest.py says how they run."""

import conftest


# definition: "mla_paged_decode_h128_ckv512_kpe64_ps64"
class TestMlaPagedDecodeH128Ckv512Kpe64Ps64(conftest.DefinitionTests):
    OP_TYPE = "mla_paged"
    NAME = "mla_paged_decode_h128_ckv512_kpe64_ps64"
    FAMILY = "mla_paged"
    ROLES = conftest.constants(
        q="q_nope",
        q_pe="q_pe",
        k="ckv_cache",
        k_pe="kpe_cache",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        last_page_len="kv_last_page_len",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    NUM_QO_HEADS = 128
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 64
    AXES = conftest.constants(
        batch_size=None,
        num_qo_heads=NUM_QO_HEADS,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
        num_pages=None,
        page_size=PAGE_SIZE,
        len_indptr=None,
        num_kv_indices=None,
    )
    SIZES = (
        conftest.size(
            "small",
            batch_size=1,
            num_pages=5,
            len_indptr=2,
            num_kv_indices=2,
        ),
        conftest.size(
            "small",
            batch_size=4,
            num_pages=9,
            len_indptr=5,
            num_kv_indices=5,
        ),
        conftest.size(
            "medium",
            batch_size=257,
            num_pages=321,
            len_indptr=258,
            num_kv_indices=119,
        ),
        conftest.size(
            "medium",
            batch_size=256,
            num_pages=20,
            len_indptr=257,
            num_kv_indices=14,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=2641,
            len_indptr=65,
            num_kv_indices=2111,
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
def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    page_size = ckv_cache.shape[1]
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32, device=q_nope.device)

    for i in range(q_nope.shape[0]):
        first, end = kv_indptr[i].item(), kv_indptr[i + 1].item()
        if first == end:
            continue
        pages = kv_indices[first:end].long()
        length = (end - first - 1) * page_size + kv_last_page_len[i].item()
        latents = ckv_cache[pages].flatten(0, 1)[:length].float()
        rotary = kpe_cache[pages].flatten(0, 1)[:length].float()

        # All heads look at the same keys.
        logits = (q_nope[i].float() @ latents.T + q_pe[i].float() @ rotary.T) * sm_scale
        lse[i] = torch.logsumexp(logits, dim=-1) / math.log(2)
        output[i] = (torch.softmax(logits, dim=-1) @ latents).to(q_nope.dtype)
    return output, lse
"""


# definition: "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1"
class TestMlaPagedPrefillCausalH32Ckv512Kpe64Ps1(conftest.DefinitionTests):
    OP_TYPE = "mla_paged"
    NAME = "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1"
    FAMILY = "mla_paged"
    ROLES = conftest.constants(
        q="q_nope",
        q_pe="q_pe",
        k="ckv_cache",
        k_pe="kpe_cache",
        qo_indptr="qo_indptr",
        kv_indptr="kv_indptr",
        kv_indices="kv_indices",
        scale="sm_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        lse="lse",
    )
    MODES = ("causal",)
    NUM_QO_HEADS = 32
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1
    AXES = conftest.constants(
        total_q=None,
        num_qo_heads=NUM_QO_HEADS,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
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
            total_q=769,
            num_pages=36928,
            len_indptr=514,
            num_kv_indices=6145,
        ),
        conftest.size(
            "medium",
            total_q=256,
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
            "blind_queries",
            total_q=5,
            num_pages=3,
            len_indptr=2,
            num_kv_indices=2,
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
            num_pages=81921,
            len_indptr=2,
            num_kv_indices=81920,
        ),
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
def run(q_nope, q_pe, ckv_cache, kpe_cache, qo_indptr, kv_indptr, kv_indices, sm_scale):
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32, device=q_nope.device)

    for i in range(len(qo_indptr) - 1):
        begin, stop = qo_indptr[i].item(), qo_indptr[i + 1].item()
        slots = kv_indices[kv_indptr[i].item() : kv_indptr[i + 1].item()].long()
        if begin == stop or len(slots) == 0:
            continue
        # A page is one key; key and query are compared whole, latent and rotary part side by side.
        keys = torch.cat([ckv_cache[slots, 0], kpe_cache[slots, 0]], dim=-1).float()
        queries = torch.cat([q_nope[begin:stop], q_pe[begin:stop]], dim=-1).float()
        logits = torch.einsum("qhd,nd->qhn", queries, keys) * sm_scale

        # The last query stands at the last key.
        places = torch.arange(begin - stop, 0, device=keys.device) + len(slots)
        unseen = torch.arange(len(slots), device=keys.device) > places[:, None]
        logits = logits.masked_fill(unseen[:, None], -math.inf)
        lse[begin:stop] = torch.logsumexp(logits, dim=-1) / math.log(2)
        latents = keys[:, : ckv_cache.shape[-1]]
        weights = torch.softmax(logits, dim=-1).masked_fill(unseen[:, None], 0)  # a query before the first key sees none
        output[begin:stop] = (weights @ latents).to(q_nope.dtype)
    return output, lse
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
