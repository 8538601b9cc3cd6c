# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: cf32fd97cd6b1c7b6e9b734f56e01de8
"""Tests of definitions/gqa_ragged. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def attention_ragged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences, in which no query sees nothing."""
    parts = attention_parts(definition)
    shapes = attention_shapes(definition, parts, axes)
    generator = conftest.generator_of(seed)
    batch = shapes["kv_indptr"][0] - 1
    keys = attention_split(shapes["k"][0], batch, generator)
    queries = attention_split(shapes["q"][0], batch, generator, most=keys)
    given = attention_noise(shapes, generator)
    attention_excite(given)
    given |= {
        "qo_indptr": attention_offsets(queries),
        "kv_indptr": attention_offsets(keys),
        "scale": 0.08,
    }
    return attention_named(definition, parts, given, device)


def attention_ragged_given(definition, inputs):
    """q, k, v, offsets of queries and of keys, scale."""
    given = attention_given(definition, inputs)
    return [given[x] for x in ("q", "k", "v", "qo_indptr", "kv_indptr", "scale")]


def attention_ragged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    flashinfer = conftest.need("flashinfer", device)
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
    attention_flashinfer_heads(q, v)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        attention_workspace(device), "NHD"
    )
    wrapper.plan(
        qo_indptr,
        kv_indptr,
        q.shape[1],
        k.shape[1],
        q.shape[2],
        v.shape[2],
        causal=attention_causal(test),
        sm_scale=scale,
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return attention_outputs(definition, *wrapper.run(q, k, v, return_lse=True))


def attention_ragged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
    output = q.new_zeros(*q.shape[:2], v.shape[2])
    lse = torch.full(q.shape[:2], -torch.inf, device=q.device)
    for n in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[n], qo_indptr[n + 1])
        keys = slice(kv_indptr[n], kv_indptr[n + 1])
        output[rows], lse[rows] = conftest.attend(
            q[rows], k[keys], v[keys], scale, causal
        )
    return attention_ordered(definition, output, lse)


def attention_ragged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
    if len(q) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q=qo_indptr,
        cu_seqlens_k=kv_indptr,
        max_seqlen_q=qo_indptr.diff().max().item(),
        max_seqlen_k=kv_indptr.diff().max().item(),
        softmax_scale=scale,
        causal=attention_causal(test),
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, output, lse.masked_fill(lse.isinf(), -torch.inf)
    )


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


# definition: "gqa_ragged_prefill_causal_h10_kv2_d128"
class TestGqaRaggedPrefillCausalH10Kv2D128:
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_causal_h10_kv2_d128"
    VARIANT = 1  # of op family gqa_ragged
    NUM_QO_HEADS = 10
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=365, total_kv=3045, len_indptr=14),
        conftest.size("medium", total_q=319, total_kv=96, len_indptr=302),
        conftest.size("medium", total_q=769, total_kv=770, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
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
        attention_ragged_flashinfer,
        attention_ragged_sglang,
        attention_ragged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    num_qo_heads, head_dim = q.shape[1:]
    num_kv_heads = k.shape[1]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        num_q, num_kv = rows.stop - rows.start, keys.stop - keys.start
        if num_q == 0 or num_kv == 0:
            continue
        # Query heads that share a kv head are neighbours.
        queries = q[rows].float().view(num_q, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)
        logits = torch.einsum("qhgd,nhd->hgqn", queries, k[keys].float()) * sm_scale
        # The last query sees all keys, each one before it one less.
        seen = torch.ones(num_q, num_kv, dtype=torch.bool, device=q.device).tril(diagonal=num_kv - num_q)
        logits = logits.masked_fill(~seen, -math.inf)
        lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        weights = weights.masked_fill(~seen, 0)  # a query before the first key sees none
        output[rows] = torch.einsum("hgqn,nhd->qhgd", weights, v[keys].float()).flatten(1, 2).to(q.dtype)
    return output, lse
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_ragged_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "gqa_ragged_prefill_causal_h8_kv4_d256"
class TestGqaRaggedPrefillCausalH8Kv4D256:
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_causal_h8_kv4_d256"
    VARIANT = 1  # of op family gqa_ragged
    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 4
    HEAD_DIM = 256
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=365, total_kv=3045, len_indptr=14),
        conftest.size("medium", total_q=319, total_kv=96, len_indptr=302),
        conftest.size("medium", total_q=769, total_kv=770, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.0625],
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
        attention_ragged_flashinfer,
        attention_ragged_sglang,
        attention_ragged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    num_qo_heads, head_dim = q.shape[1:]
    num_kv_heads = k.shape[1]
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        num_q, num_kv = rows.stop - rows.start, keys.stop - keys.start
        if num_q == 0 or num_kv == 0:
            continue
        # Query heads that share a kv head are neighbours.
        queries = q[rows].float().view(num_q, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)
        logits = torch.einsum("qhgd,nhd->hgqn", queries, k[keys].float()) * sm_scale
        # The last query sees all keys, each one before it one less.
        seen = torch.ones(num_q, num_kv, dtype=torch.bool, device=q.device).tril(diagonal=num_kv - num_q)
        logits = logits.masked_fill(~seen, -math.inf)
        lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        weights = weights.masked_fill(~seen, 0)  # a query before the first key sees none
        output[rows] = torch.einsum("hgqn,nhd->qhgd", weights, v[keys].float()).flatten(1, 2).to(q.dtype)
    return output, lse
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_ragged_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "gqa_ragged_prefill_h16_kv16_d80"
class TestGqaRaggedPrefillH16Kv16D80:
    OP_TYPE = "gqa_ragged"
    NAME = "gqa_ragged_prefill_h16_kv16_d80"
    VARIANT = 0  # of op family gqa_ragged
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 16
    HEAD_DIM = 80
    AXES = conftest.constants(
        total_q=None,
        total_kv=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
        len_indptr=None,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", total_q=16, total_kv=33, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=365, total_kv=3045, len_indptr=14),
        conftest.size("medium", total_q=319, total_kv=96, len_indptr=302),
        conftest.size("medium", total_q=769, total_kv=37, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
    SCALARS = conftest.constants(
        sm_scale=[0.11180339887498948],
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
        attention_ragged_flashinfer,
        attention_ragged_sglang,
        attention_ragged_torch,
    )
    TOLERANCE = staticmethod(attention_tolerance)
    JUDGE = None
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    group = q.shape[1] // k.shape[1]

    for i in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())
        keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())
        if rows.start == rows.stop or keys.start == keys.stop:
            continue
        wide_k = k[keys].float().repeat_interleave(group, dim=1)
        wide_v = v[keys].float().repeat_interleave(group, dim=1)
        logits = torch.einsum("qhd,nhd->qhn", q[rows].float(), wide_k) * sm_scale
        lse[rows] = torch.logsumexp(logits, dim=-1) / math.log(2)
        weights = torch.softmax(logits, dim=-1)
        output[rows] = torch.einsum("qhn,nhd->qhd", weights, wide_v).to(q.dtype)
    return output, lse
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return attention_ragged_inputs(conftest.definition_of(cls), axes, device, seed)

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
