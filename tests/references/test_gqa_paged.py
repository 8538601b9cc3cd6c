# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: ec5a75ad726d2b0304cdb025050eb61e
"""Tests of definitions/gqa_paged. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


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


def gqa_paged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    flashinfer = conftest.need("flashinfer", device)
    given = attention_given(definition, inputs)
    q, k, v = given["q"], given["k"], given["v"]
    attention_flashinfer_heads(q, v)
    keys = given["kv_indptr"], given["kv_indices"], attention_paged_last(given)
    heads = (q.shape[-2], k.shape[-2], q.shape[-1], k.shape[1])
    words = {
        "q_data_type": q.dtype,
        "kv_data_type": k.dtype,
        "sm_scale": given["scale"],
    }
    if "qo_indptr" in given:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD"
        )
        causal = attention_causal(test)
        wrapper.plan(given["qo_indptr"], *keys, *heads, causal=causal, **words)
    else:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD", use_tensor_cores=True
        )
        wrapper.plan(*keys, *heads, **words)
    return attention_outputs(definition, *wrapper.run(q, (k, v), return_lse=True))


def gqa_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    query, caches = given["q"], (given["k"], given["v"])
    output = torch.zeros_like(query)
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(
            query[rows], k, v, given["scale"], causal
        )
    return attention_ordered(definition, output, lse)


def gqa_paged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    if len(given["q"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_with_kvcache(
        given["q"],
        given["k"],
        given["v"],
        cache_seqlens=torch.tensor(keys, dtype=torch.int32, device=device),
        page_table=torch.nn.utils.rnn.pad_sequence(pages, batch_first=True).int(),
        cu_seqlens_q=offsets,
        max_seqlen_q=offsets.diff().max().item(),
        softmax_scale=given["scale"],
        causal=attention_causal(test),
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, output, lse.masked_fill(lse.isinf(), -torch.inf)
    )


# definition: "gqa_paged_decode_h28_kv4_d128_ps1"
class TestGqaPagedDecodeH28Kv4D128Ps1:
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_decode_h28_kv4_d128_ps1"
    VARIANT = 0  # of op family gqa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
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
            batch_size=13,
            num_pages=3875,
            len_indptr=14,
            num_kv_indices=3098,
        ),
        conftest.size(
            "medium",
            batch_size=301,
            num_pages=321,
            len_indptr=302,
            num_kv_indices=77,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=163843,
            len_indptr=65,
            num_kv_indices=131072,
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
    SAMPLES = False
    GROUND_TRUTHS = (
        gqa_paged_flashinfer,
        gqa_paged_sglang,
        gqa_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_paged_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_edges)
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


# definition: "gqa_paged_decode_h40_kv8_d128_ps16"
class TestGqaPagedDecodeH40Kv8D128Ps16:
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_decode_h40_kv8_d128_ps16"
    VARIANT = 0  # of op family gqa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
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
            batch_size=13,
            num_pages=253,
            len_indptr=14,
            num_kv_indices=200,
        ),
        conftest.size(
            "medium",
            batch_size=301,
            num_pages=321,
            len_indptr=302,
            num_kv_indices=57,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=10318,
            len_indptr=65,
            num_kv_indices=8252,
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
    SAMPLES = False
    GROUND_TRUTHS = (
        gqa_paged_flashinfer,
        gqa_paged_sglang,
        gqa_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_paged_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_edges)
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


# definition: "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
class TestGqaPagedPrefillCausalH16Kv4D128Ps16:
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
    VARIANT = 1  # of op family gqa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
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
            num_pages=10,
            batch_size=4,
            len_indptr=5,
            num_kv_indices=6,
        ),
        conftest.size(
            "medium",
            total_q=365,
            num_pages=248,
            batch_size=13,
            len_indptr=14,
            num_kv_indices=196,
        ),
        conftest.size(
            "medium",
            total_q=319,
            num_pages=321,
            batch_size=301,
            len_indptr=302,
            num_kv_indices=57,
        ),
        conftest.size(
            "medium",
            total_q=769,
            num_pages=65,
            batch_size=2,
            len_indptr=3,
            num_kv_indices=50,
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
    SAMPLES = False
    GROUND_TRUTHS = (
        gqa_paged_flashinfer,
        gqa_paged_sglang,
        gqa_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_paged_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_edges)
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


# definition: "gqa_paged_prefill_h20_kv20_d64_ps1"
class TestGqaPagedPrefillH20Kv20D64Ps1:
    OP_TYPE = "gqa_paged"
    NAME = "gqa_paged_prefill_h20_kv20_d64_ps1"
    VARIANT = 0  # of op family gqa_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
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
            num_pages=58,
            len_indptr=5,
            num_kv_indices=44,
        ),
        conftest.size(
            "medium",
            total_q=365,
            num_pages=3809,
            len_indptr=14,
            num_kv_indices=3045,
        ),
        conftest.size(
            "medium",
            total_q=319,
            num_pages=321,
            len_indptr=302,
            num_kv_indices=96,
        ),
        conftest.size(
            "medium",
            total_q=769,
            num_pages=49,
            len_indptr=3,
            num_kv_indices=37,
        ),
        conftest.size(
            "large",
            total_q=4096,
            num_pages=20483,
            len_indptr=9,
            num_kv_indices=16384,
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
    SAMPLES = False
    GROUND_TRUTHS = (
        gqa_paged_flashinfer,
        gqa_paged_sglang,
        gqa_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_paged_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_edges)
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
