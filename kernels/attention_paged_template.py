"""What generated pytest files have of attention over a paged cache: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest

from kernels.attention_template import (
    attention_excite,
    attention_named,
    attention_noise,
    attention_offsets,
    attention_parts,
    attention_shapes,
    attention_split,
)


def attention_paged_lengths(shapes, generator):
    """Entries of kv_indices, keys of the last page and queries of each sequence."""
    batch, page = shapes["kv_indptr"][0] - 1, shapes["k"][1]
    pages = attention_split(shapes["kv_indices"][0], batch, generator)
    last = torch.randint(1, page + 1, (batch,), generator=generator).tolist()
    if "last_page_len" not in shapes:
        last = [page] * batch
    last = [n if count > 0 else 0 for n, count in zip(last, pages, strict=True)]
    queries = [1] * batch
    if "qo_indptr" in shapes:
        keys = [max(0, (p - 1) * page + n) for p, n in zip(pages, last, strict=True)]
        queries = attention_split(shapes["q"][0], batch, generator, most=keys)
    return pages, last, queries


def attention_paged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences whose pages lie out of order, the last one partly filled; no query sees nothing. Keys and values
    that nobody may read are huge, so that one which is read shows."""
    parts = attention_parts(definition)
    shapes = attention_shapes(definition, parts, axes)
    generator = conftest.generator_of(seed)
    pages, last, queries = attention_paged_lengths(shapes, generator)
    given = attention_noise(shapes, generator)
    attention_excite(given)
    order = torch.randperm(max(shapes["k"][0], 1), generator=generator)
    (entries,) = shapes["kv_indices"]
    given |= {
        "qo_indptr": attention_offsets(queries),
        "kv_indptr": attention_offsets(pages),
        "kv_indices": order.repeat(-(-entries // len(order)))[:entries],
        "last_page_len": torch.tensor(last),
        "scale": 0.08,
    }
    attention_paged_hide(given, pages, last)
    return attention_named(definition, parts, given, device)


def attention_paged_hide(given, pages, last):
    """Makes every slot huge that belongs to no sequence."""
    used = torch.zeros(given["k"].shape[:2], dtype=torch.bool)
    owned = given["kv_indices"][: sum(pages)].split(pages)
    for own, keys in zip(owned, last, strict=True):
        if len(own) > 0:
            used[own[:-1]] = True
            used[own[-1], :keys] = True
    for part in ("k", "k_pe", "v"):
        if part in given:
            given[part][~used] = 1000.0


def attention_paged_queries(given):
    """Offsets of queries; without any, each sequence has one."""
    kv_indptr = given["kv_indptr"]
    single = torch.arange(len(kv_indptr), dtype=torch.int32, device=kv_indptr.device)
    return given.get("qo_indptr", single)


def attention_paged_last(given):
    """Keys on each sequence's last page; where nothing says, it is full."""
    full = torch.full_like(given["kv_indptr"][1:], given["k"].shape[1])
    return given.get("last_page_len", full)


def attention_paged_keys(given):
    """How many keys each sequence has."""
    pages, last = given["kv_indptr"].diff(), attention_paged_last(given)
    keys = (pages - 1) * given["k"].shape[1] + last
    return torch.where(pages > 0, keys, 0).to(torch.int32)


def attention_paged_sequences(given):
    """Offsets of queries; for each sequence its pages (a list of tensors) and how many keys it has."""
    pages = given["kv_indices"].split(given["kv_indptr"].diff().tolist())
    return attention_paged_queries(given), pages, attention_paged_keys(given).tolist()
