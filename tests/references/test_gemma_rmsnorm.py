# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 41a04f05d2ad27df8e90eaca83c5fba4
"""Tests of definitions/gemma_rmsnorm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "gemma_fused_add_rmsnorm_h4608"
class TestGemmaFusedAddRmsnormH4608:
    OP_TYPE = "gemma_rmsnorm"
    NAME = "gemma_fused_add_rmsnorm_h4608"
    FAMILY = "gemma_rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        residual="residual",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        updated="residual_out",
    )
    MODES = ()
    HIDDEN_SIZE = 4608
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:gemma-2-27b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=321),
        conftest.size("large", batch_size=16384),
    )
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
        [  # residual_out
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, residual, weight):
    # The sum is normed before it is rounded: only what leaves the function is bfloat16.
    rows = hidden_states.float() + residual.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    output = rows * torch.rsqrt(mean_square + EPSILON) * (1 + weight.float())
    return output.to(hidden_states.dtype), rows.to(residual.dtype)
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


# definition: "gemma_rmsnorm_h5376"
class TestGemmaRmsnormH5376:
    OP_TYPE = "gemma_rmsnorm"
    NAME = "gemma_rmsnorm_h5376"
    FAMILY = "gemma_rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ()
    HIDDEN_SIZE = 5376
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=321),
        conftest.size("large", batch_size=16384),
    )
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, weight):
    rows = hidden_states.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    normed = rows * torch.rsqrt(mean_square + EPSILON)
    return (normed * (1 + weight.float())).to(hidden_states.dtype)
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
