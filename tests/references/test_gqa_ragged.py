# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: b75dfaf21baab55fd474c7a40bf3308c
"""Tests of definitions/gqa_ragged. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def attention_ragged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences, in which no query sees nothing."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    specs = [spec for spec in definition["inputs"].values() if spec["shape"]]
    queries, keys = (conftest.shape_of(spec, sizes)[0] for spec in specs[:2])
    indptr = next(spec for spec in specs if "int" in spec["dtype"])
    batch = conftest.shape_of(indptr, sizes)[0] - 1
    kv_lengths = attention_split(keys, batch, generator)
    q_lengths = attention_split(queries, batch, generator, most=kv_lengths)
    inputs = {}
    query, key = conftest.tensor_inputs(definition)[:2]
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 0.08
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if "indptr" in name:
            values = attention_offsets(q_lengths if "q" in name else kv_lengths, dtype)
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator) * 1.7
            if name == query and shape[0] > 0:
                values[0, 0, 0] = 1296.0  # logits beyond what exp takes, all alike
            elif name == key:
                values[..., 0] = 1.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def attention_ragged_flashinfer(test, inputs):
    device = conftest.device_of(inputs)
    flashinfer = conftest.need("flashinfer", device)
    definition = conftest.definition_of(test)
    tensors = [inputs[name] for name in definition["inputs"]]
    scale = next(x for x in tensors if isinstance(x, float))
    q, k, v = [x for x in tensors if isinstance(x, torch.Tensor) and x.dim() > 2]
    attention_flashinfer_heads(q, v)
    offsets = {name: inputs[name] for name in definition["inputs"] if "indptr" in name}
    kv_indptr = next(x for name, x in offsets.items() if "kv" in name)
    qo_indptr = next((x for name, x in offsets.items() if "kv" not in name), kv_indptr)
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
    return attention_outputs(definition, wrapper.run(q, k, v, return_lse=True))


def attention_ragged_edges(definition, axes):
    """No sequence, and one with one query and one key."""
    found = []
    for count in (0, 1):
        edge = {}
        for name, spec in definition["inputs"].items():
            if spec["shape"]:
                edge[spec["shape"][0]] = count + ("indptr" in name)
        found.append({**axes, **{axis: edge[axis] for axis in axes if axis in edge}})
    return found


def attention_ragged_parts(test, inputs):
    """q, k, v, offsets of queries and of keys, scale, causal."""
    definition = conftest.definition_of(test)
    values = [inputs[name] for name in definition["inputs"]]
    scale = next(x for x in values if isinstance(x, float))
    floats = [x for x in values if torch.is_tensor(x) and x.dim() > 2]
    offsets = {name: x for name, x in inputs.items() if "indptr" in name}
    kv_indptr = next(x for name, x in offsets.items() if "kv" in name)
    qo_indptr = next((x for name, x in offsets.items() if "kv" not in name), kv_indptr)
    return *floats, qo_indptr, kv_indptr, scale, attention_causal(test)


def attention_ragged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    q, k, v, qo_indptr, kv_indptr, scale, causal = attention_ragged_parts(test, inputs)
    output = q.new_zeros(*q.shape[:2], v.shape[2])
    lse = torch.full(q.shape[:2], -torch.inf, device=q.device)
    for n in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[n], qo_indptr[n + 1])
        keys = slice(kv_indptr[n], kv_indptr[n + 1])
        output[rows], lse[rows] = conftest.attend(
            q[rows], k[keys], v[keys], scale, causal
        )
    return (output, lse)[: len(conftest.definition_of(test)["outputs"])]


def attention_ragged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device = conftest.device_of(inputs)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    q, k, v, qo_indptr, kv_indptr, scale, causal = attention_ragged_parts(test, inputs)
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
        causal=causal,
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    lse = lse.masked_fill(lse.isinf(), -torch.inf)
    return attention_outputs(conftest.definition_of(test), (output, lse))


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


def attention_offsets(lengths, dtype):
    offsets = torch.tensor([0, *lengths])
    return offsets.cumsum(0).to(dtype)


def attention_tolerance(definition, axes, index):
    """Kernels keep probabilities in the values' dtype on the way: averages are good to a few units of it, lse to 1e-2."""
    return (1e-2, 2e-2, 1.0) if index == 0 else (1e-2, 1e-3, 1.0)


def attention_flashinfer_heads(q, v):
    """FlashInfer compiles for other sizes, too, and what comes of it reads where nothing is."""
    pair = (q.shape[-1], v.shape[-1])
    if pair not in ((64, 64), (128, 128), (256, 256), (192, 128)):
        raise NotImplementedError(
            f"it has no kernel for heads of {pair[0]} and {pair[1]}"
        )


def attention_workspace(device):
    return torch.empty(128 << 20, dtype=torch.uint8, device=device)


def attention_outputs(definition, result):
    """lse of an empty row is -inf; older releases have a large negative number."""
    output, lse = result
    lse = torch.where(lse <= -1e4, -torch.inf, lse.float())
    return (output, lse)[: len(definition["outputs"])]


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
        conftest.size("small", total_q=6, total_kv=17, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=160, total_kv=640, len_indptr=9),
        conftest.size("medium", total_q=520, total_kv=536, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
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

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_ragged_edges)
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
        conftest.size("small", total_q=6, total_kv=17, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=160, total_kv=640, len_indptr=9),
        conftest.size("medium", total_q=520, total_kv=536, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
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

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_ragged_edges)
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
        conftest.size("small", total_q=6, total_kv=17, len_indptr=2),
        conftest.size("small", total_q=16, total_kv=44, len_indptr=5),
        conftest.size("medium", total_q=160, total_kv=640, len_indptr=9),
        conftest.size("medium", total_q=520, total_kv=536, len_indptr=3),
        conftest.size("large", total_q=4096, total_kv=16384, len_indptr=9),
    )
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

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, attention_ragged_edges)
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
