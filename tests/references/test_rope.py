# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 497d39f4d0304bdb8b393428601aa944
"""Tests of definitions/rope. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def rope_roles(definition):
    """Names of the positions, the cache (None without one) and what is rotated."""
    specs = {
        name: definition["inputs"][name] for name in conftest.tensor_inputs(definition)
    }
    positions = next(name for name, spec in specs.items() if "int" in spec["dtype"])
    token = specs[positions]["shape"][0]
    rest = [name for name in specs if name != positions]
    rotated = [
        name
        for name in rest
        if specs[name]["shape"][0] == token
        and len(specs[name]["shape"]) > 1
        and "cache" not in name
    ]
    caches = [name for name in rest if name not in rotated]
    return positions, caches[0] if caches else None, rotated


def rope_scalar(name):
    """Values of Python scalars, none that a reference would have by heart."""
    for word, value in {
        "rotary_dim": 32,
        "interleave": True,
        "neox": True,
        "theta": 30000.0,
        "scale": 3.0,
        "low_freq": 2.0,
        "high_freq": 5.0,
        "old_context": 6000.0,
    }.items():
        if word in name:
            return value
    raise conftest.Unavailable(f"no value is known for the scalar '{name}'")


def rope_inputs(definition, axes, device="cpu", seed=0):
    """Cosines and sines are noise: a wrong row, column or half then gives quite another answer. Positions: the last, 0,
    1, the last once more, then at random."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    positions, cache, rotated = rope_roles(definition)
    rows = sizes[definition["inputs"][cache]["shape"][0]] if cache else 4096
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = rope_scalar(name)
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if name == positions:
            values = torch.randint(0, max(rows, 1), shape, generator=generator)
            first = torch.tensor([rows - 1, 0, min(1, rows - 1), rows - 1])[
                : len(values)
            ]
            values[: len(first)] = first
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator)
            values *= 2 if name in rotated else 1
        inputs[name] = values.to(dtype).to(device)
    return inputs


def rope_edges(definition, axes):
    """No token, and one."""
    token = definition["inputs"][rope_roles(definition)[0]]["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


def rope_tolerance(definition, axes, index):
    """With a cache the rotation is exact up to one rounding; without, the angles are float32's."""
    spec = list(definition["outputs"].values())[index]
    atol = 1e-6 if rope_roles(definition)[1] else 2.5e-3
    places = {torch.bfloat16: 2**-7, torch.float16: 2**-10}
    return atol, places.get(conftest.dtype_of(spec), 1e-6), 1.0


def rope_is_neox(definition, inputs):
    for name, value in inputs.items():
        if definition["inputs"][name]["shape"] is None and "neox" in name:
            return bool(value)
        if definition["inputs"][name]["shape"] is None and "interleave" in name:
            return not value
    return not any(word in definition["name"] for word in ("interleave", "gptj"))


def rope_given(definition, inputs, word):
    """The Python scalar in whose name the word is, in a list; an empty one where there is none."""
    names = [n for n, spec in definition["inputs"].items() if spec["shape"] is None]
    return [inputs[name] for name in names if word in name][:1]


def rope_rotary_dim(definition, inputs):
    """How much of a head turns: a scalar or an axis says, or None: all of it."""
    given = rope_given(definition, inputs, "rotary_dim")
    return given[0] if given else definition["axes"].get("rotary_dim", {}).get("value")


def rope_number(test, inputs, name):
    """A Python scalar by the words of its name, or a constant."""
    word = name.removeprefix("rope_").removesuffix("_factor").removesuffix("_len")
    given = rope_given(conftest.definition_of(test), inputs, word)
    return given[0] if given else conftest.need_constant(test, name)


def rope_flashinfer(test, inputs):
    rope = conftest.need("flashinfer.rope", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    q, k = [inputs[name].contiguous() for name in rotated]
    neox = rope_is_neox(definition, inputs)
    if cache is not None:
        flat = [x.view(len(x), -1) for x in (q, k)]
        rope.apply_rope_with_cos_sin_cache_inplace(
            inputs[positions], *flat, q.shape[-1], inputs[cache], is_neox=neox
        )
        return q, k
    words = {"rotary_dim": rope_rotary_dim(definition, inputs), "interleave": not neox}
    words["rope_theta"] = rope_number(test, inputs, "rope_theta")
    if test.VARIANT & 4:
        for name in ("low_freq_factor", "high_freq_factor", "old_context_len"):
            words[name] = rope_number(test, inputs, name)
        words["rope_scale"] = rope_number(test, inputs, "rope_scale")
        return rope.apply_llama31_rope_pos_ids(q, k, inputs[positions], **words)
    words["rope_scale"] = 1.0
    if "rope_scale" in test.CONSTANTS or rope_given(definition, inputs, "scale"):
        words["rope_scale"] = rope_number(test, inputs, "rope_scale")
    return rope.apply_rope_pos_ids(q, k, inputs[positions], **words)


def rope_sglang(test, inputs):
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    if cache is None:
        raise NotImplementedError("it takes a cos/sin cache")
    q, k = [inputs[name].contiguous() for name in rotated]
    flat = [x.view(len(x), -1) for x in (q, k)]
    kernel.apply_rope_with_cos_sin_cache_inplace(
        positions=inputs[positions].long(),
        query=flat[0],
        key=flat[1],
        head_size=q.shape[-1],
        cos_sin_cache=inputs[cache],
        is_neox=rope_is_neox(definition, inputs),
    )
    return q, k


def rope_probe(test):
    """At position 1 the last pair (1, 0) turns by theta ** (2 / width - 1), whose tangent comes back."""
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    inputs = rope_inputs(definition, test.SIZES[0].axes)
    width = inputs[rotated[0]].shape[-1]
    if cache is not None or any(not torch.is_tensor(x) for x in inputs.values()):
        return {}
    neox = rope_is_neox(definition, inputs)
    first, second = (width // 2 - 1, width - 1) if neox else (width - 2, width - 1)
    inputs[positions] = torch.ones_like(inputs[positions])
    inputs[rotated[0]] = torch.zeros_like(inputs[rotated[0]])
    inputs[rotated[0]][..., first] = 1.0
    pair = conftest.run_reference(test, inputs)[0].double().flatten(0, -2)[0]
    angle = torch.atan2(pair[second], pair[first]).item()
    if angle == 0:  # what is turned is narrower than the heads
        return {}
    theta = angle ** (width / (2 - width)) if 0 < angle < 1 else 0.0
    return {"rope_theta": conftest.round_constant(theta)}


# definition: "llama31_rope_pos_ids_h32_kv8_d128"
class TestLlama31RopePosIdsH32Kv8D128:
    OP_TYPE = "rope"
    NAME = "llama31_rope_pos_ids_h32_kv8_d128"
    VARIANT = 4  # of op family rope
    NUM_Q_HEADS = 32
    NUM_K_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        head_dim=HEAD_DIM,
    )
    ROPE_THETA = 500000.0  # model:llama-3.1-8b
    ROPE_SCALE = 8.0  # model:llama-3.1-8b
    LOW_FREQ_FACTOR = 1.0  # model:llama-3.1-8b
    HIGH_FREQ_FACTOR = 4.0  # model:llama-3.1-8b
    OLD_CONTEXT_LEN = 8192.0  # model:llama-3.1-8b
    CONSTANTS = conftest.constants(
        rope_theta=ROPE_THETA,
        rope_scale=ROPE_SCALE,
        low_freq_factor=LOW_FREQ_FACTOR,
        high_freq_factor=HIGH_FREQ_FACTOR,
        old_context_len=OLD_CONTEXT_LEN,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", nnz=1),
        conftest.size("small", nnz=16),
        conftest.size("medium", nnz=321),
        conftest.size("large", nnz=65536),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0078125, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import math

import torch

THETA = 500000.0
SCALE = 8.0
LOW, HIGH = 1.0, 4.0
OLD_CONTEXT = 8192


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@torch.no_grad()
def run(q, k, pos_ids):
    dim = q.shape[-1]
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=q.device) / dim
    fast = THETA ** -exponents
    slow = fast / SCALE
    turns = OLD_CONTEXT * fast / (2 * math.pi)
    part = ((turns - LOW) / (HIGH - LOW)).clamp(0, 1)
    frequencies = part * fast + (1 - part) * slow
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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


# definition: "rope_pos_ids_h32_kv8_d128"
class TestRopePosIdsH32Kv8D128:
    OP_TYPE = "rope"
    NAME = "rope_pos_ids_h32_kv8_d128"
    VARIANT = 0  # of op family rope
    NUM_Q_HEADS = 32
    NUM_K_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        head_dim=HEAD_DIM,
    )
    ROPE_THETA = 1e06  # model:qwen3-8b
    CONSTANTS = conftest.constants(
        rope_theta=ROPE_THETA,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", nnz=1),
        conftest.size("small", nnz=16),
        conftest.size("medium", nnz=321),
        conftest.size("large", nnz=65536),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0078125, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch

THETA = 1000000.0


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@torch.no_grad()
def run(q, k, pos_ids):
    dim = q.shape[-1]
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=q.device) / dim
    frequencies = THETA ** -exponents
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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


# definition: "rope_pos_ids_interleaved_given_d64"
class TestRopePosIdsInterleavedGivenD64:
    OP_TYPE = "rope"
    NAME = "rope_pos_ids_interleaved_given_d64"
    VARIANT = 8  # of op family rope
    HEAD_DIM = 64
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=None,
        num_k_heads=None,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", nnz=1, num_q_heads=37, num_k_heads=9),
        conftest.size("small", nnz=16, num_q_heads=67, num_k_heads=34),
        conftest.size("medium", nnz=321, num_q_heads=5, num_k_heads=2),
        conftest.size("large", nnz=65536, num_q_heads=5, num_k_heads=2),
    )
    SCALARS = conftest.constants(
        rotary_dim=[32],
        interleave=[
            True,
            False,
            True,
            False,
        ],
        rope_scale=[3.0],
        rope_theta=[30000.0],
    )
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0009765625, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0009765625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def rotate(x, cos, sin, rotary_dim, interleave):
    turning, resting = x[..., :rotary_dim].float(), x[..., rotary_dim:]
    if interleave:
        one, other = turning[..., 0::2], turning[..., 1::2]
    else:
        one, other = turning.chunk(2, dim=-1)
    pair = (one * cos - other * sin, other * cos + one * sin)
    rotated = torch.stack(pair, dim=-1).flatten(-2) if interleave else torch.cat(pair, dim=-1)
    return torch.cat((rotated.to(x.dtype), resting), dim=-1)


@torch.no_grad()
def run(q, k, pos_ids, rotary_dim, interleave, rope_scale, rope_theta):
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float32, device=q.device) / rotary_dim
    frequencies = rope_theta ** -exponents / rope_scale
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin, rotary_dim, interleave), rotate(k, cos, sin, rotary_dim, interleave)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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


# definition: "rope_with_cos_sin_cache_interleaved_d64"
class TestRopeWithCosSinCacheInterleavedD64:
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_interleaved_d64"
    VARIANT = 3  # of op family rope
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 1
    HEAD_SIZE = 64
    ROTARY_DIM = 64
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1, max_seq_len=64),
        conftest.size("small", num_tokens=16, max_seq_len=64),
        conftest.size("medium", num_tokens=321, max_seq_len=40960),
        conftest.size("large", num_tokens=65536, max_seq_len=131072),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # q_pe_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_pe_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def rotate(x, cos, sin):
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    pairs = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return pairs.flatten(-2).to(x.dtype)


@torch.no_grad()
def run(q_pe, k_pe, cos_sin_cache, positions):
    rows = cos_sin_cache[positions.long()].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q_pe, cos, sin), rotate(k_pe, cos, sin)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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


# definition: "rope_with_cos_sin_cache_neox_style_d128_rd128"
class TestRopeWithCosSinCacheNeoxStyleD128Rd128:
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_neox_style_d128_rd128"
    VARIANT = 1  # of op family rope
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_SIZE = 128
    ROTARY_DIM = 128
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1, max_seq_len=64),
        conftest.size("small", num_tokens=16, max_seq_len=64),
        conftest.size("medium", num_tokens=321, max_seq_len=40960),
        conftest.size("large", num_tokens=65536, max_seq_len=131072),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # q_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return rotated.to(x.dtype)


@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    rows = cos_sin_cache[positions].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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


# definition: "rope_with_cos_sin_cache_neox_style_d128_rd64"
class TestRopeWithCosSinCacheNeoxStyleD128Rd64:
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_neox_style_d128_rd64"
    VARIANT = 1  # of op family rope
    HEAD_SIZE = 128
    ROTARY_DIM = 64
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=None,
        num_kv_heads=None,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size(
            "small",
            num_tokens=1,
            num_qo_heads=37,
            num_kv_heads=9,
            max_seq_len=64,
        ),
        conftest.size(
            "small",
            num_tokens=16,
            num_qo_heads=67,
            num_kv_heads=34,
            max_seq_len=64,
        ),
        conftest.size(
            "medium",
            num_tokens=321,
            num_qo_heads=5,
            num_kv_heads=2,
            max_seq_len=40960,
        ),
        conftest.size(
            "large",
            num_tokens=65536,
            num_qo_heads=5,
            num_kv_heads=2,
            max_seq_len=131072,
        ),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # q_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        rope_flashinfer,
        rope_sglang,
    )
    TOLERANCE = staticmethod(rope_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch

ROTARY_DIM = 64


def rotate(x, cos, sin):
    turning, resting = x[..., :ROTARY_DIM].float(), x[..., ROTARY_DIM:]
    first, second = turning.chunk(2, dim=-1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return torch.cat((rotated.to(x.dtype), resting), dim=-1)


@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    rows = cos_sin_cache[positions].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return rope_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, rope_edges)
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
