# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 464de11fe8e84bca368f410d26ee73dc
"""Tests of definitions/page. conftest.py says how they run."""

import conftest


# definition: "append_paged_kv_cache_kv8_d128_ps1"
class TestAppendPagedKvCacheKv8D128Ps1(conftest.DefinitionTests):
    OP_TYPE = "page"
    NAME = "append_paged_kv_cache_kv8_d128_ps1"
    FAMILY = "page"
    ROLES = conftest.constants(
        append="append_key",
        append_other="append_value",
        batch_indices="batch_indices",
        positions="positions",
        cache="k_cache",
        cache_other="v_cache",
        indices="kv_indices",
        indptr="kv_indptr",
        last_page_len="kv_last_page_len",
    )
    OUTPUT_ROLES = conftest.constants(
        output="k_cache_out",
        output_other="v_cache_out",
    )
    MODES = ("padded",)
    PAGE_SIZE = 1
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=6,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=3,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=45,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=29,
        ),
        conftest.size(
            "medium",
            nnz_kv=513,
            num_pages=6145,
            batch_size=257,
            len_indptr=258,
            num_kv_indices=135169,
        ),
        conftest.size(
            "medium",
            nnz_kv=256,
            num_pages=591,
            batch_size=512,
            len_indptr=513,
            num_kv_indices=393,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=37250,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=24832,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_tokens",
            nnz_kv=0,
            num_pages=6,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=3,
        ),
        conftest.edge(
            "padding",
            nnz_kv=17,
            num_pages=45,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=29,
        ),
    )
    RULES = conftest.rules(
        [  # k_cache_out
            (0.0, 0.0, 1.0),
        ],
        [  # v_cache_out
            (0.0, 0.0, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_key, append_value, batch_indices, positions, k_cache, v_cache, kv_indices, kv_indptr, kv_last_page_len):
    k_out, v_out = k_cache.clone(), v_cache.clone()
    starts = kv_indptr.tolist()
    for token, (sequence, position) in enumerate(zip(batch_indices.tolist(), positions.tolist())):
        if sequence < 0:
            continue
        page = int(kv_indices[starts[sequence] + position])
        k_out[page, 0] = append_key[token]
        v_out[page, 0] = append_value[token]
    return k_out, v_out
"""


# definition: "append_paged_kv_cache_kv8_d128_ps16"
class TestAppendPagedKvCacheKv8D128Ps16(conftest.DefinitionTests):
    OP_TYPE = "page"
    NAME = "append_paged_kv_cache_kv8_d128_ps16"
    FAMILY = "page"
    ROLES = conftest.constants(
        append="append_key",
        append_other="append_value",
        batch_indices="batch_indices",
        positions="positions",
        cache="k_cache",
        cache_other="v_cache",
        indices="kv_indices",
        indptr="kv_indptr",
        last_page_len="kv_last_page_len",
    )
    OUTPUT_ROLES = conftest.constants(
        output="k_cache",
        output_other="v_cache",
    )
    MODES = ("padded",)
    PAGE_SIZE = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
    )
    LEAVES = conftest.constants(
        k_cache="k_cache",
        v_cache="v_cache",
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=5,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=2,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=9,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=5,
        ),
        conftest.size(
            "medium",
            nnz_kv=513,
            num_pages=321,
            batch_size=257,
            len_indptr=258,
            num_kv_indices=32982,
        ),
        conftest.size(
            "medium",
            nnz_kv=256,
            num_pages=51,
            batch_size=512,
            len_indptr=513,
            num_kv_indices=33,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=2690,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=1792,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_tokens",
            nnz_kv=0,
            num_pages=6,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=3,
        ),
        conftest.edge(
            "padding",
            nnz_kv=17,
            num_pages=9,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=5,
        ),
    )
    RULES = conftest.rules(
        [  # k_cache
            (0.0, 0.0, 1.0),
        ],
        [  # v_cache
            (0.0, 0.0, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_key, append_value, batch_indices, positions, k_cache, v_cache, kv_indices, kv_indptr, kv_last_page_len):
    page_size = k_cache.shape[1]
    real = batch_indices >= 0
    if not real.all():
        append_key, append_value = append_key[real], append_value[real]
        batch_indices, positions = batch_indices[real], positions[real]
    rank = kv_indptr[batch_indices] + positions // page_size
    page, place = kv_indices[rank].long(), (positions % page_size).long()
    k_cache[page, place] = append_key
    v_cache[page, place] = append_value
    return k_cache, v_cache
"""


# definition: "append_paged_mla_kv_cache_ckv512_kpe64_ps64"
class TestAppendPagedMlaKvCacheCkv512Kpe64Ps64(conftest.DefinitionTests):
    OP_TYPE = "page"
    NAME = "append_paged_mla_kv_cache_ckv512_kpe64_ps64"
    FAMILY = "page"
    ROLES = conftest.constants(
        append="append_ckv",
        append_other="append_kpe",
        batch_indices="batch_indices",
        positions="positions",
        cache="ckv_cache",
        cache_other="kpe_cache",
        indices="kv_indices",
        indptr="kv_indptr",
        last_page_len="kv_last_page_len",
    )
    OUTPUT_ROLES = conftest.constants(
        output="ckv_cache",
        output_other="kpe_cache",
    )
    MODES = ("padded", "latent")
    PAGE_SIZE = 64
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
    )
    LEAVES = conftest.constants(
        ckv_cache="ckv_cache",
        kpe_cache="kpe_cache",
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=5,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=2,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=8,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=4,
        ),
        conftest.size(
            "medium",
            nnz_kv=513,
            num_pages=513,
            batch_size=257,
            len_indptr=258,
            num_kv_indices=33110,
        ),
        conftest.size(
            "medium",
            nnz_kv=256,
            num_pages=24,
            batch_size=512,
            len_indptr=513,
            num_kv_indices=15,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=962,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=640,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_tokens",
            nnz_kv=0,
            num_pages=6,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=3,
        ),
        conftest.edge(
            "padding",
            nnz_kv=17,
            num_pages=8,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=4,
        ),
    )
    RULES = conftest.rules(
        [  # ckv_cache
            (0.0, 0.0, 1.0),
        ],
        [  # kpe_cache
            (0.0, 0.0, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_ckv, append_kpe, batch_indices, positions, ckv_cache, kpe_cache, kv_indices, kv_indptr, kv_last_page_len):
    page_size = ckv_cache.shape[1]
    real = batch_indices >= 0
    if not real.all():
        append_ckv, append_kpe = append_ckv[real], append_kpe[real]
        batch_indices, positions = batch_indices[real], positions[real]
    pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
    slots = pages.long() * page_size + positions % page_size
    ckv_cache.view(-1, ckv_cache.shape[-1])[slots] = append_ckv
    kpe_cache.view(-1, kpe_cache.shape[-1])[slots] = append_kpe
    return ckv_cache, kpe_cache
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
