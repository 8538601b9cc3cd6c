# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 2f7cbb8d7011ab1771ea0f0020e829f7
"""Tests of definitions/dsa_paged. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def attention_index(name):
    """The part of an index vector. They are all of one kind, so that only a name tells."""
    word = name.lower()
    of_queries = word[0] == "q" or "qo_" in word or "_q" in word
    offsets = "qo_indptr" if of_queries else "kv_indptr"
    parts = {
        "last": "last_page_len",
        "indices": "kv_indices",
        "indptr": offsets,
        "cu_seqlens": offsets,
        "offsets": offsets,
    }
    return next(part for key, part in parts.items() if key in word)


def attention_axes(definition, spec):
    """Its axes as they are compared: a const one is as good as another of its value."""
    axes = definition["axes"]
    return [
        axes[name]["value"] if axes[name]["type"] == "const" else name
        for name in spec["shape"]
    ]


def attention_results(definition):
    """Names of the output and, if there is one, of lse, which has no head dim."""
    specs = definition["outputs"]
    return sorted(specs, key=lambda name: -len(specs[name]["shape"]))


def attention_tensors(definition, names):
    """{part: name} of queries, keys and values. A query has the output's tokens and heads; what is as wide as the output
    is no rotary part. Keys come before values, unless their names say otherwise."""
    output = attention_axes(
        definition, definition["outputs"][attention_results(definition)[0]]
    )
    axes = {
        name: attention_axes(definition, definition["inputs"][name]) for name in names
    }
    if len(names) == 4:
        found = {}
        for name in names:
            part = "q" if axes[name][:2] == output[:2] else "k"
            found[part if axes[name][2] == output[2] else part + "_pe"] = name
        return found
    q, k, v = sorted(names, key=lambda x: (len(axes[x]), axes[x][:2] != output[:2]))
    if k[0] == "v" and v[0] == "k":
        k, v = v, k
    return {"q": q, "k": k, "v": v}


def attention_parts(definition):
    """{part: name} of the inputs, whatever their order and names, as the op family has them: kernels/attention_roles.c.
    Nothing else looks at either. Latent attention has q, k, which are its values too, and of both a part "_pe"."""
    parts, tensors = {}, []
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            parts["scale"] = name
        elif "float" in spec["dtype"]:
            tensors.append(name)
        else:
            sparse = len(spec["shape"]) == 2
            parts["sparse" if sparse else attention_index(name)] = name
    return parts | attention_tensors(definition, tensors)


def attention_int32(value):
    """What libraries take for offsets and indices, which a definition may have in 64 bits."""
    whole = isinstance(value, torch.Tensor) and not value.is_floating_point()
    return value.int() if whole else value


def attention_given(definition, inputs):
    """{part: value} of inputs by name, for calls."""
    return {
        part: attention_int32(inputs[name])
        for part, name in attention_parts(definition).items()
    }


def attention_named(definition, parts, given, device):
    """Inputs by name, in the definition's order and dtypes, of {part: value}."""
    inputs = {name: given[part] for part, name in parts.items()}
    for name in conftest.tensor_inputs(definition):
        dtype = conftest.dtype_of(definition["inputs"][name])
        inputs[name] = inputs[name].to(dtype).to(device)
    return {name: inputs[name] for name in definition["inputs"]}


def attention_shapes(definition, parts, axes):
    """{part: shape} of the inputs that are tensors."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    return {
        part: conftest.shape_of(specs[name], sizes)
        for part, name in parts.items()
        if specs[name]["shape"] is not None
    }


def attention_noise(shapes, generator):
    """{part: values} of queries, keys and values."""
    return {
        part: conftest.noise(shapes[part], torch.float32, "cpu", generator) * 1.7
        for part in ("q", "q_pe", "k", "k_pe", "v")
        if part in shapes
    }


def attention_excite(given):
    """Logits of the first query beyond what exp takes, all alike."""
    given["q"][:1, 0, 0] = 1296.0
    given["k"][..., 0] = 1.0


def attention_edges(definition, axes):
    """No sequence, and one with one query and one key."""
    parts, found = attention_parts(definition), []
    more = {"q": 0, "last_page_len": 0, "qo_indptr": 1, "kv_indptr": 1}
    more |= {"kv_indices": 0} if "kv_indices" in parts else {"k": 0, "v": 0}
    for count in (0, 1):
        edge = {
            definition["inputs"][parts[part]]["shape"][0]: count + beyond
            for part, beyond in more.items()
            if part in parts
        }
        found.append({**axes, **{axis: edge[axis] for axis in axes if axis in edge}})
    return found


def attention_split(total, parts, generator, least=1, most=None):
    """`total` as a list of random parts, each of at least `least` where that is possible, at most `most` (a list)."""
    if parts == 0:
        return []
    least = min(least, total // parts)
    most = [min(m, total) for m in most] if most else [total] * parts
    lengths = [min(least, m) for m in most]
    left = total - sum(lengths)
    while left > 0:
        open_parts = [i for i in range(parts) if lengths[i] < most[i]] or [parts - 1]
        chosen = open_parts[torch.randint(len(open_parts), (), generator=generator)]
        room = (
            most[chosen] - lengths[chosen] if lengths[chosen] < most[chosen] else left
        )
        step = torch.randint(1, min(room, left) + 1, (), generator=generator).item()
        lengths[chosen] += step
        left -= step
    return lengths


def attention_offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


def attention_tolerance(definition, axes, index):
    """Kernels keep probabilities in the values' dtype on the way: averages are good to a few units of it, lse to 1e-2."""
    output = list(definition["outputs"])[index] == attention_results(definition)[0]
    return (1e-2, 2e-2, 1.0) if output else (1e-2, 1e-3, 1.0)


def attention_flashinfer_heads(q, v):
    """FlashInfer compiles for other sizes, too, and what comes of it reads where nothing is."""
    pair = (q.shape[-1], v.shape[-1])
    if pair not in ((64, 64), (128, 128), (256, 256), (192, 128)):
        raise NotImplementedError(
            f"it has no kernel for heads of {pair[0]} and {pair[1]}"
        )


def attention_workspace(device):
    return torch.empty(256 << 20, dtype=torch.uint8, device=device)


def attention_ordered(definition, *results):
    """Output and lse in the definition's order; without lse if it has none."""
    found = dict(zip(attention_results(definition), results, strict=False))
    return [found[name] for name in definition["outputs"]]


def attention_outputs(definition, output, lse):
    """lse of an empty row is -inf; older releases have a large negative number."""
    lse = torch.where(lse <= -1e4, -torch.inf, lse.float())
    return attention_ordered(definition, output, lse)


def attention_causal(test):
    """Whether a query sees only the keys up to its own place: as the op family takes it from name, tags and description."""
    return test.VARIANT == 1


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


# definition: "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
class TestDsaSparseAttentionH16Ckv512Kpe64Topk2048Ps64:
    OP_TYPE = "dsa_paged"
    NAME = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
    VARIANT = 0  # of op family dsa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1, num_pages=50),
        conftest.size("small", num_tokens=8, num_pages=50),
        conftest.size("medium", num_tokens=301, num_pages=321),
        conftest.size("large", num_tokens=1024, num_pages=1026),
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
    SAMPLES = False
    GROUND_TRUTHS = (
        dsa_paged_flashinfer,
        dsa_paged_sglang,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = staticmethod(dsa_paged_judge)
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return dsa_paged_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, dsa_paged_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "dsa_sparse_attention_h32_ckv512_kpe64_topk2048_ps1"
class TestDsaSparseAttentionH32Ckv512Kpe64Topk2048Ps1:
    OP_TYPE = "dsa_paged"
    NAME = "dsa_sparse_attention_h32_ckv512_kpe64_topk2048_ps1"
    VARIANT = 0  # of op family dsa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1, num_pages=3074),
        conftest.size("small", num_tokens=8, num_pages=3074),
        conftest.size("medium", num_tokens=301, num_pages=6146),
        conftest.size("large", num_tokens=1024, num_pages=65538),
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
    SAMPLES = False
    GROUND_TRUTHS = (
        dsa_paged_flashinfer,
        dsa_paged_sglang,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = staticmethod(dsa_paged_judge)
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return dsa_paged_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, dsa_paged_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
class TestDsaTopkIndexerFp8H64D128Topk2048Ps64:
    OP_TYPE = "dsa_paged"
    NAME = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
    VARIANT = 1  # of op family dsa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1, max_num_pages=41, num_pages=63),
        conftest.size("small", batch_size=5, max_num_pages=41, num_pages=63),
        conftest.size("medium", batch_size=301, max_num_pages=65, num_pages=577),
        conftest.size("large", batch_size=64, max_num_pages=513, num_pages=771),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # topk_indices
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        dsa_paged_flashinfer,
        dsa_paged_sglang,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = staticmethod(dsa_paged_judge)
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return dsa_paged_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, dsa_paged_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
