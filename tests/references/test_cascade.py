# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 29d5064c1776cc1683c3cc4cb5694267
"""Tests of definitions/cascade. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "merge_state_h32_d128"
class TestMergeStateH32D128:
    OP_TYPE = "cascade"
    NAME = "merge_state_h32_d128"
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v_a",
        s="s_a",
        v_other="v_b",
        s_other="s_b",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v_merged",
        s_merged="s_merged",
    )
    MODES = ()
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=8192),
    )
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("all_empty", seq_len=11),
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
        return conftest.random_inputs(cls, axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.all_edges(SIZES, EDGES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.ground_truths(FAMILY))
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
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v",
        s="s",
        v_other="v_other",
        s_other="s_other",
        mask="mask",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v",
        s_merged="s",
    )
    MODES = ()
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
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
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("all_empty", seq_len=11),
        conftest.edge("none_merged", seq_len=11),
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
        return conftest.random_inputs(cls, axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.all_edges(SIZES, EDGES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.ground_truths(FAMILY))
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
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v",
        s="s",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v_merged",
        s_merged="s_merged",
    )
    MODES = ("many",)
    NUM_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_states=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1, num_states=2),
        conftest.size("small", seq_len=16, num_states=33),
        conftest.size("medium", seq_len=321, num_states=9),
        conftest.size("large", seq_len=8192, num_states=8),
    )
    EDGES = (
        conftest.edge("no_tokens", seq_len=0, num_states=2),
        conftest.edge("one_state", seq_len=11, num_states=1),
        conftest.edge("all_empty", seq_len=11, num_states=2),
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
        return conftest.random_inputs(cls, axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.all_edges(SIZES, EDGES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.ground_truths(FAMILY))
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
