"""page in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def page_roles(definition):
    """Names: what is appended, the caches, and the tables of integers by the words in their names."""
    specs = definition["inputs"]
    floats = [name for name, spec in specs.items() if "int" not in spec["dtype"]]
    caches = [name for name in floats if "cache" in name]
    tables = {}
    for name in specs:
        if name not in floats:
            words = ("position", "indptr", "last_page", "batch", "indices")
            tables[next((word for word in words if word in name), "indices")] = name
    return [name for name in floats if name not in caches], caches, tables


def page_size_axis(definition):
    """The axis of a cache that is neither pages nor halves nor in what is appended."""
    added, caches, _ = page_roles(definition)
    own = definition["inputs"][added[0]]["shape"]
    shape = definition["inputs"][caches[0]]["shape"][1:]
    return [axis for axis in shape if axis not in own][-1]


def page_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences that hold the new tokens at their ends; their pages lie in no order, the last ones partly filled,
    no two share one; the tokens come in no order. No element is zero, so that a vector which lands in another place, or
    does not land, shows."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    added, caches, tables = page_roles(definition)
    page = sizes[page_size_axis(definition)]
    tokens, batch, entries, pool = (
        conftest.shape_of(specs[name], sizes)[0]
        for name in (added[0], tables["indptr"], tables["indices"], caches[0])
    )
    batch -= 1
    least = min(entries // max(batch, 1), 1)
    extra = torch.randint(
        max(batch, 1), (entries - least * batch,), generator=generator
    )
    pages = extra.bincount(minlength=batch)[:batch] + least
    last = torch.randint(1, page + 1, (batch,), generator=generator)
    if ((pages - 1) * page + last).clamp(min=0).sum() < tokens:
        last = torch.full((batch,), page)
    lengths = ((pages - 1) * page + last).clamp(min=0)
    if lengths.sum() < tokens or entries > pool or (batch == 0 and entries > 0):
        raise conftest.Unavailable(f"{entries} of {pool} pages hold no {tokens} tokens")

    owner = torch.arange(batch).repeat_interleave(lengths)
    owner = (
        owner[torch.randperm(len(owner), generator=generator)[:tokens]].sort().values
    )
    new = owner.bincount(minlength=batch)
    rank = torch.arange(tokens) - (new.cumsum(0) - new)[owner]
    order = torch.randperm(tokens, generator=generator)
    values = {
        "batch": owner[order],
        "position": ((lengths - new)[owner] + rank)[order],
        "indptr": torch.cat([torch.zeros(1), pages.cumsum(0)]),
        "indices": torch.randperm(pool, generator=generator)[:entries],
        "last_page": torch.where(pages > 0, last, 0),
    }
    inputs = {name: values[word] for word, name in tables.items()}
    for name in [*added, *caches]:
        shape = conftest.shape_of(specs[name], sizes)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        inputs[name] = values + torch.where(values < 0, -1.0, 1.0)
    return {
        name: inputs[name].to(conftest.dtype_of(spec)).to(device)
        for name, spec in specs.items()
    }


def page_edges(definition, axes):
    """No token, and one."""
    token = definition["inputs"][page_roles(definition)[0][0]]["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


def page_layout(definition):
    """FlashInfer's word for where the heads are."""
    added, caches, _ = page_roles(definition)
    shape = definition["inputs"][caches[0]]["shape"]
    after = shape[shape.index(page_size_axis(definition)) + 1 :]
    heads = definition["inputs"][added[0]]["shape"][1:-1]
    return "NHD" if all(axis in after for axis in heads) else "HND"


def page_outputs(definition, names, caches):
    """Outputs go by the caches' names where they have them, by their places otherwise."""
    named = dict(zip(names, caches, strict=True))
    pairs = zip(definition["outputs"], caches, strict=True)
    return [named.get(name, cache) for name, cache in pairs]


def page_torch(test, inputs):
    """index_put_ of every token's vector at its page and place."""
    definition = conftest.definition_of(test)
    added, caches, tables = page_roles(definition)
    axis = definition["inputs"][caches[0]]["shape"].index(page_size_axis(definition))
    page = inputs[caches[0]].shape[axis]
    owner, position, indptr, indices = (
        inputs[tables[word]].long()
        for word in ("batch", "position", "indptr", "indices")
    )
    pages = indices[indptr[owner] + position // page]
    held = [inputs[name] for name in caches]
    halves = held if len(held) == len(added) else held[0].unbind(1)
    for half, name in zip(halves, added, strict=True):
        places = half if page_layout(definition) == "NHD" else half.transpose(1, 2)
        places.index_put_((pages, position % page), inputs[name])
    return page_outputs(definition, caches, held)


def page_flashinfer(test, inputs):
    page = conftest.need("flashinfer.page", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    names, caches, tables = page_roles(definition)
    added, held = [inputs[name] for name in names], [inputs[name] for name in caches]
    words = ("batch", "position", "indices", "indptr", "last_page")
    owner, position, *pages = [inputs[tables[word]].int() for word in words]
    if len(owner) == 0:
        raise NotImplementedError("it appends at least one token")
    if added[0].dim() == 2:
        page.append_paged_mla_kv_cache(*added, owner, position, *held, *pages)
    else:
        cache = held[0] if len(held) == 1 else tuple(held)
        layout = page_layout(definition)
        page.append_paged_kv_cache(
            *added, owner, position, cache, *pages, kv_layout=layout
        )
    return page_outputs(definition, caches, held)
