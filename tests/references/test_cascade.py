# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 70388ac6e8401fc2c8218b7e29503abd
"""Tests of definitions/cascade. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def cascade_inputs(definition, axes, device="cpu", seed=0):
    """Log-sum-exps near each other, and far apart both ways; both states of a row are never empty."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    ranks = [
        len(spec["shape"]) for spec in definition["inputs"].values() if spec["shape"]
    ]
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if dtype == torch.bool:
            values = values > -0.3
        elif len(shape) < max(ranks):
            values = values * 10
            values.view(-1)[::7] *= 4
        inputs[name] = values.to(dtype).to(device)
    return inputs


def cascade_parts(inputs):
    """Values and logsumexps in their order, by their ranks; a list of the mask, or an empty one."""
    widest = max(x.dim() for x in inputs.values())
    parts = [[], [], []]
    for x in inputs.values():
        parts[min(widest - x.dim(), 2)].append(x)
    return parts


def cascade_outputs(test, v, s):
    specs = conftest.definition_of(test)["outputs"].values()
    return [v if len(spec["shape"]) == 3 else s for spec in specs]


def cascade_flashinfer(test, inputs):
    cascade = conftest.need("flashinfer.cascade", conftest.device_of(inputs))
    v, s, mask = cascade_parts(inputs)
    if len(v) == 1:
        result = cascade.merge_states(v[0], s[0])
    elif mask:
        cascade.merge_state_in_place(v[0], s[0], v[1], s[1], mask[0].bool())
        result = v[0], s[0]
    else:
        result = cascade.merge_state(v[0], s[0], v[1], s[1])
    return cascade_outputs(test, *result)


def cascade_sglang(test, inputs):
    """merge_state takes logarithms to base 2; merge_state_v2, all that newer releases have, natural ones."""
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    v, s, mask = cascade_parts(inputs)
    if len(v) == 1 or mask:
        raise NotImplementedError("it merges two states")
    if hasattr(kernel, "merge_state"):
        return cascade_outputs(test, *kernel.merge_state(v[0], s[0], v[1], s[1]))
    ln2 = torch.log(torch.tensor(2.0, device=s[0].device))
    merged, lse = kernel.merge_state_v2(v[0], s[0] * ln2, v[1], s[1] * ln2)
    return cascade_outputs(test, merged, lse / ln2)


def cascade_edges(definition, axes):
    """No token, and one."""
    token = next(iter(definition["inputs"].values()))["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


# definition: "merge_state_h32_d128"
class TestMergeStateH32D128:
    OP_TYPE = "cascade"
    NAME = "merge_state_h32_d128"
    VARIANT = 0  # of op family cascade
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=8192),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # v_merged
            (5e-05, 0.0078125, 1.0),
        ],
        [  # s_merged
            (0.0001, 1e-06, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        cascade_flashinfer,
        cascade_sglang,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(v_a, s_a, v_b, s_b):
    largest = torch.maximum(s_a, s_b).clamp(min=-1e30)
    weight_a, weight_b = torch.exp2(s_a - largest), torch.exp2(s_b - largest)
    total = weight_a + weight_b
    v = v_a.float() * (weight_a / total)[..., None] + v_b.float() * (weight_b / total)[..., None]
    v = torch.where(total[..., None] > 0, v, 0.0)
    return v.to(v_a.dtype), largest + torch.log2(total)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return cascade_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, cascade_edges)
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


# definition: "merge_state_in_place_h32_d128"
class TestMergeStateInPlaceH32D128:
    OP_TYPE = "cascade"
    NAME = "merge_state_in_place_h32_d128"
    VARIANT = 0  # of op family cascade
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        v="v",
        s="s",
    )
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=8192),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # v
            (5e-05, 0.0009765625, 1.0),
        ],
        [  # s
            (0.0001, 1e-06, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        cascade_flashinfer,
        cascade_sglang,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(v, s, v_other, s_other, mask):
    merged = torch.logaddexp2(s, s_other)
    mine, theirs = torch.exp2(s - merged), torch.exp2(s_other - merged)
    mine, theirs = mine.nan_to_num(0.0), theirs.nan_to_num(0.0)
    sum_of_both = v.float() * mine[..., None] + v_other.float() * theirs[..., None]
    v.copy_(torch.where(mask[:, None, None], sum_of_both.to(v.dtype), v))
    s.copy_(torch.where(mask[:, None], merged, s))
    return v, s
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return cascade_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, cascade_edges)
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


# definition: "merge_states_h8_d128"
class TestMergeStatesH8D128:
    OP_TYPE = "cascade"
    NAME = "merge_states_h8_d128"
    VARIANT = 1  # of op family cascade
    NUM_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_states=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1, num_states=2),
        conftest.size("small", seq_len=16, num_states=33),
        conftest.size("medium", seq_len=321, num_states=9),
        conftest.size("large", seq_len=8192, num_states=8),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # v_merged
            (5e-05, 0.0078125, 1.0),
        ],
        [  # s_merged
            (0.0001, 1e-06, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        cascade_flashinfer,
        cascade_sglang,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(v, s):
    natural = s * math.log(2)
    total = torch.logsumexp(natural, dim=1)
    weights = torch.exp(natural - total[:, None]).nan_to_num(0.0)
    merged = (v.float() * weights[..., None]).sum(dim=1)
    return merged.to(v.dtype), total / math.log(2)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return cascade_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, cascade_edges)
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
