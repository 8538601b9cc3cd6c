# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: c10627ca167c0ad855fb9c3645d96b10
"""Tests of definitions/mla_paged. conftest.py says how they run."""

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


def mla_paged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    mla = conftest.need("flashinfer.mla", device)
    given = attention_given(definition, inputs)
    q_nope, q_pe, ckv, kpe = (given[part] for part in ("q", "q_pe", "k", "k_pe"))
    wrapper = mla.BatchMLAPagedAttentionWrapper(
        attention_workspace(device), backend="fa2"
    )
    wrapper.plan(
        attention_paged_queries(given),
        given["kv_indptr"],
        given["kv_indices"],
        attention_paged_keys(given),
        q_nope.shape[1],
        q_nope.shape[2],
        q_pe.shape[2],
        ckv.shape[1],
        attention_causal(test),
        given["scale"],
        q_nope.dtype,
        ckv.dtype,
    )
    result = wrapper.run(q_nope, q_pe, ckv, kpe, return_lse=True)
    return attention_outputs(definition, *result)


def mla_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    query, key = (torch.cat([given[x], given[x + "_pe"]], -1) for x in "qk")
    caches = key.unsqueeze(2), given["k"].unsqueeze(2)
    output = torch.zeros_like(given["q"])
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(
            query[rows], k, v, given["scale"], causal
        )
    return attention_ordered(definition, output, lse)


def mla_paged_sglang(test, inputs):
    """FlashAttention 3, which takes the compressed keys as values, and the queries for them beside the rest; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    if len(given["q"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_with_kvcache(
        given["q_pe"],
        given["k_pe"].unsqueeze(2),
        given["k"].unsqueeze(2),
        qv=given["q"],
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


# definition: "mla_paged_decode_h128_ckv512_kpe64_ps64"
class TestMlaPagedDecodeH128Ckv512Kpe64Ps64:
    OP_TYPE = "mla_paged"
    NAME = "mla_paged_decode_h128_ckv512_kpe64_ps64"
    VARIANT = 0  # of op family mla_paged
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
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
            batch_size=13,
            num_pages=71,
            len_indptr=14,
            num_kv_indices=55,
        ),
        conftest.size(
            "medium",
            batch_size=133,
            num_pages=321,
            len_indptr=134,
            num_kv_indices=27,
        ),
        conftest.size(
            "large",
            batch_size=64,
            num_pages=2641,
            len_indptr=65,
            num_kv_indices=2111,
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
    SAMPLES = False
    GROUND_TRUTHS = (
        mla_paged_flashinfer,
        mla_paged_sglang,
        mla_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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


# definition: "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1"
class TestMlaPagedPrefillCausalH32Ckv512Kpe64Ps1:
    OP_TYPE = "mla_paged"
    NAME = "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1"
    VARIANT = 1  # of op family mla_paged
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
            total_q=142,
            num_pages=3729,
            len_indptr=14,
            num_kv_indices=2981,
        ),
        conftest.size(
            "medium",
            total_q=319,
            num_pages=321,
            len_indptr=302,
            num_kv_indices=96,
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
        mla_paged_flashinfer,
        mla_paged_sglang,
        mla_paged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
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
