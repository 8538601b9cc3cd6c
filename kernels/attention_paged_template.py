"""What generated pytest files have of attention over a paged cache: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest

from kernels.attention_template import attention_offsets, attention_split


def attention_paged_named(definition, word):
    """The input whose name holds the word; None: there is none."""
    return next((name for name in definition["inputs"] if word in name), None)


def attention_paged_lengths(definition, axes, generator):
    """Entries of kv_indices, keys of the last page and queries of each sequence."""
    sizes = conftest.resolve_axes(definition, axes)
    names = definition["inputs"]
    kv_indptr = attention_paged_named(definition, "kv_indptr")
    batch = conftest.shape_of(names[kv_indptr], sizes)[0] - 1
    entries = conftest.shape_of(
        names[attention_paged_named(definition, "kv_indices")], sizes
    )[0]
    cache = next(name for name in names if "cache" in name)
    page = conftest.shape_of(names[cache], sizes)[1]
    pages = attention_split(entries, batch, generator)
    last = torch.randint(1, page + 1, (batch,), generator=generator).tolist()
    if attention_paged_named(definition, "last_page") is None:
        last = [page] * batch
    last = [n if count > 0 else 0 for n, count in zip(last, pages, strict=True)]
    queries = None
    if attention_paged_named(definition, "qo_indptr"):
        query = next(iter(names.values()))
        total = conftest.shape_of(query, sizes)[0]
        keys = [max(0, (p - 1) * page + n) for p, n in zip(pages, last, strict=True)]
        queries = attention_split(total, batch, generator, most=keys)
    return pages, last, queries


def attention_paged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences whose pages lie out of order, the last one partly filled; no query sees nothing. Keys and values
    that nobody may read are huge, so that one which is read shows."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    pages, last, queries = attention_paged_lengths(definition, axes, generator)
    caches, inputs = [], {}
    query = next(iter(definition["inputs"]))
    key = next(name for name in definition["inputs"] if "cache" in name)
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 0.08
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if "qo_indptr" in name:
            values = attention_offsets(queries, dtype)
        elif "kv_indptr" in name:
            values = attention_offsets(pages, dtype)
        elif "kv_indices" in name:
            values = torch.randperm(max(caches[0].shape[0], 1), generator=generator)
            repeats = -(-shape[0] // len(values))
            values = values.repeat(repeats)[: shape[0]]
        elif "last_page" in name:
            values = torch.tensor(last)
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator) * 1.7
            if name == query and shape[0] > 0:
                values[0, 0, 0] = 1296.0  # logits beyond what exp takes, all alike
            elif name == key:
                values[..., 0] = 1.0
        if "cache" in name:
            caches.append(values)
        inputs[name] = values
    attention_paged_hide(definition, inputs, caches, pages, last)
    for name, spec in definition["inputs"].items():
        if spec["shape"] is not None:
            inputs[name] = inputs[name].to(conftest.dtype_of(spec)).to(device)
    return inputs


def attention_paged_hide(definition, inputs, caches, pages, last):
    """Makes every slot huge that belongs to no sequence."""
    indices = inputs[attention_paged_named(definition, "kv_indices")]
    used = torch.zeros(caches[0].shape[:2], dtype=torch.bool)
    first = 0
    for count, keys in zip(pages, last, strict=True):
        own = indices[first : first + count]
        if count > 0:
            used[own[:-1]] = True
            used[own[-1], :keys] = True
        first += count
    for cache in caches:
        cache[~used] = 1000.0


def attention_paged_edges(definition, axes):
    """No sequence, and one with one query and one key."""
    specs, found = definition["inputs"], []
    query = next(iter(specs))
    words = {"last_page": 0, "qo_indptr": 1, "kv_indptr": 1, "kv_indices": 0}
    for count in (0, 1):
        edge = {specs[query]["shape"][0]: count}
        for word, more in words.items():
            name = attention_paged_named(definition, word)
            edge |= {specs[name]["shape"][0]: count + more} if name else {}
        found.append({**axes, **{axis: edge[axis] for axis in axes if axis in edge}})
    return found


def attention_paged_sequences(definition, inputs):
    """Offsets of queries; for each sequence its pages (a list of tensors) and how many keys it has."""
    kv_indptr, indices = (
        inputs[attention_paged_named(definition, word)]
        for word in ("kv_indptr", "kv_indices")
    )
    page = next(x for name, x in inputs.items() if "cache" in name).shape[1]
    pages = list(indices.split(kv_indptr.diff().tolist()))
    last_name = attention_paged_named(definition, "last_page")
    last = inputs[last_name].tolist() if last_name else [page] * len(pages)
    keys = [
        (len(own) - 1) * page + n if len(own) > 0 else 0
        for own, n in zip(pages, last, strict=True)
    ]
    qo_name = attention_paged_named(definition, "qo_indptr")
    single = torch.arange(len(kv_indptr), dtype=torch.int32, device=indices.device)
    return inputs[qo_name] if qo_name else single, pages, keys
