"""dsa_paged in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest

from kernels.attention_template import (
    attention_given,
    attention_named,
    attention_noise,
    attention_ordered,
    attention_parts,
    attention_shapes,
    attention_workspace,
)


def dsa_paged_is_indexer(definition):
    """Only a cache of octets has four axes."""
    return any(len(spec["shape"] or ()) == 4 for spec in definition["inputs"].values())


def dsa_paged_indexer_parts(definition):
    """{part: name}: rank and kind of dtype tell all inputs of an indexer apart."""
    kinds = {
        (3, True): "q",
        (2, True): "weights",
        (4, False): "cache",
        (1, False): "lengths",
        (2, False): "table",
    }
    return {
        kinds[len(spec["shape"]), "float" in spec["dtype"]]: name
        for name, spec in definition["inputs"].items()
    }


def dsa_paged_inputs(definition, axes, device="cpu", seed=0):
    make = dsa_paged_indexer_inputs
    if not dsa_paged_is_indexer(definition):
        make = dsa_paged_attention_inputs
    parts, given = make(definition, axes, conftest.generator_of(seed))
    return attention_named(definition, parts, given, device)


def dsa_paged_attention_inputs(definition, axes, generator):
    """Chosen keys in no order. Of four tokens, one has as many as there are, one half with gaps (-1) between, one a
    single key, one none. Keys that nobody chose are huge, so that one which is read shows."""
    parts = attention_parts(definition)
    shapes = attention_shapes(definition, parts, axes)
    given = attention_noise(shapes, generator)
    slots = given["k"].shape[:2].numel()
    tokens, most = shapes["sparse"]
    chosen = torch.full((tokens, most), -1)
    for t in range(tokens):
        keys = torch.randperm(slots, generator=generator)[:most]
        if t % 4 == 1:
            chosen[t, : len(keys)] = keys
            chosen[t, 1::2] = -1
        else:
            count = {0: len(keys), 2: 1, 3: 0}[t % 4]
            chosen[t, :count] = keys[:count]
    unread = torch.ones(slots, dtype=torch.bool)
    unread[chosen[chosen >= 0]] = False
    for part in ("k", "k_pe"):
        given[part].view(slots, -1)[unread] = 1000.0
    return parts, {**given, "sparse": chosen, "scale": 0.08}


def dsa_paged_indexer_inputs(definition, axes, generator):
    """A page holds its keys (e4m3), then a float32 scale for each. Sequences of every kind of length, with distinct
    pages in no order; what no sequence has is NaN. Weights of either sign."""
    parts = dsa_paged_indexer_parts(definition)
    shapes = attention_shapes(definition, parts, axes)
    pages, page, _, width = shapes["cache"]
    batch, most_pages = shapes["table"]
    (output,) = definition["outputs"].values()
    sizes = conftest.resolve_axes(definition, axes)
    most, chosen = most_pages * page, conftest.shape_of(output, sizes)[1]
    if pages < most_pages:
        raise conftest.Unavailable(f"{most_pages} distinct pages of {pages}")
    kinds = torch.tensor(
        [most - page // 2, 1, chosen, 0, chosen + 1, chosen // 2 + 1, most // 3, page]
    )
    held = kinds.repeat(batch // len(kinds) + 1)[:batch].clamp(max=most)
    owned = torch.zeros(pages, page, dtype=torch.bool)
    rows = torch.empty(batch, most_pages, dtype=torch.int64)
    for b, length in enumerate(held.tolist()):
        rows[b] = torch.randperm(pages, generator=generator)[:most_pages]
        places = torch.arange(length)
        owned[rows[b, places // page], places % page] = True
    keys = conftest.noise((pages, page, width - 4), torch.float32, "cpu", generator)
    scales = torch.rand(pages, page, 1, generator=generator) + 1
    scales *= 2.0 ** -torch.randint(8, 12, scales.shape, generator=generator)
    keys, scales = keys * 448, scales.masked_fill(~owned[..., None], torch.nan)
    keys = keys.masked_fill(~owned[..., None], torch.nan).to(torch.float8_e4m3fn)
    octets = [part.flatten(1).view(torch.uint8) for part in (keys, scales)]
    q, weights = (
        conftest.noise(shapes[part], torch.float32, "cpu", generator)
        for part in ("q", "weights")
    )
    cache = torch.cat(octets, 1).view(torch.int8).view(pages, page, 1, width)
    given = {"q": q * 8, "weights": weights, "cache": cache}
    return parts, {**given, "lengths": held, "table": rows}


def dsa_paged_edges(definition, axes):
    """No token, and one."""
    token = next(iter(definition["outputs"].values()))["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


def dsa_paged_scores(definition, inputs, b):
    """Name and score of every key of sequence b; and how large the terms of a score are."""
    given = {
        part: inputs[name] for part, name in dsa_paged_indexer_parts(definition).items()
    }
    query, weights = given["q"][b].double(), given["weights"][b].double()
    cache, table = given["cache"], given["table"][b].long()
    length, page = given["lengths"][b].item(), cache.shape[1]
    places = torch.arange(length, device=cache.device)
    octets = cache.view(torch.uint8).flatten(1)
    split = page * (cache.shape[-1] - 4)
    keys = octets[:, :split].contiguous().view(torch.float8_e4m3fn)
    scales = octets[:, split:].contiguous().view(torch.float32)
    where = table[places // page], places % page
    keys = keys.view(len(cache), page, -1)[where].double()
    terms = (keys * scales[where].double()[:, None] @ query.mT).relu()
    return where[0] * page + where[1], terms @ weights, (terms @ weights.abs())


def dsa_paged_judge(definition, inputs, outputs):
    """The indexer's answer is a set: as many keys as there are, no more than are asked for, each once, all of those that
    are clearly among the best, none that is clearly not; the rest is -1. False: this is attention, to be compared."""
    if not dsa_paged_is_indexer(definition):
        return False
    (answer,) = outputs
    for b, row in enumerate(answer):
        names, scores, sizes = dsa_paged_scores(definition, inputs, b)
        count = min(len(names), len(row))
        given = row[row >= 0].long()
        assert len(given) == count and len(given.unique()) == count, (
            f"sequence {b} has {len(names)} keys; {len(given)} were chosen,"
            f" {len(given.unique())} of them distinct, where {count} should be"
        )
        assert torch.isin(given, names).all(), (
            f"sequence {b}: a key that is not its own"
        )
        if count == 0:
            continue
        least = scores.topk(count).values[-1]
        slack = sizes.max() * 2**-14
        chosen = torch.isin(names, given)
        worse = chosen & (scores < least - slack)
        missed = ~chosen & (scores > least + slack)
        assert not worse.any() and not missed.any(), (
            f"sequence {b}: {int(worse.sum())} keys were chosen that are not among the best {count},"
            f" {int(missed.sum())} of the best were not; the last of them scores {least:.6g}"
        )
    return True


def dsa_paged_lse(lse):
    """lse of an empty row is -inf; some releases have a large number of either sign."""
    lse = lse.float()
    return torch.where(lse.isinf() | (lse.abs() >= 1e4), -torch.inf, lse)


def dsa_paged_given(test, inputs):
    definition = conftest.definition_of(test)
    if dsa_paged_is_indexer(definition):
        raise NotImplementedError("it has no call for the whole of an indexer")
    given = attention_given(definition, inputs)
    q_nope, q_pe, ckv, kpe, indices, scale = (
        given[part] for part in ("q", "q_pe", "k", "k_pe", "sparse", "scale")
    )
    if len(q_nope) == 0:
        raise NotImplementedError("it takes no empty batch")
    return q_nope, q_pe, ckv.flatten(0, 1), kpe.flatten(0, 1), indices, scale


def dsa_paged_flashinfer(test, inputs):
    """The MLA kernel, for which every token is a sequence of its own, with pages of one key."""
    device = conftest.device_of(inputs)
    mla = conftest.need("flashinfer.mla", device)
    q_nope, q_pe, ckv, kpe, indices, scale = dsa_paged_given(test, inputs)
    valid = indices >= 0
    lengths = valid.sum(1).int()
    offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0).int()])
    workspace = attention_workspace(device)
    wrapper = mla.BatchMLAPagedAttentionWrapper(workspace, backend="fa2")
    wrapper.plan(
        torch.arange(len(q_nope) + 1, dtype=torch.int32, device=device),
        offsets,
        indices[valid].int(),
        lengths,
        q_nope.shape[1],
        q_nope.shape[2],
        q_pe.shape[2],
        1,
        False,
        scale,
        q_nope.dtype,
        ckv.dtype,
    )
    pages = ckv.unsqueeze(1), kpe.unsqueeze(1)
    output, lse = wrapper.run(q_nope, q_pe, *pages, return_lse=True)
    return attention_ordered(conftest.definition_of(test), output, dsa_paged_lse(lse))


def dsa_paged_sglang(test, inputs):
    """It takes 64 heads (128 on Blackwell), so there are zeros beside ours."""
    device = conftest.device_of(inputs)
    module = conftest.need("sgl_kernel.flash_mla", device)
    q_nope, q_pe, ckv, kpe, indices, scale = dsa_paged_given(test, inputs)
    major = conftest.need_capability(device, 9)
    tokens, heads, width = q_nope.shape
    query = q_nope.new_zeros(tokens, 64 if major == 9 else 128, width + q_pe.shape[2])
    query[:, :heads] = torch.cat([q_nope, q_pe], -1)
    output, _, lse = module.flash_mla_sparse_fwd(
        query,
        torch.cat([ckv, kpe], -1).unsqueeze(1),
        indices.int().unsqueeze(1),
        sm_scale=scale,
        d_v=width,
    )
    empty = (indices < 0).all(1)[:, None]
    lse = dsa_paged_lse(lse[:, :heads]).masked_fill(empty, -torch.inf)
    return attention_ordered(conftest.definition_of(test), output[:, :heads], lse)
