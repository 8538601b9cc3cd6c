# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 962f1f8491f599899b708d5bb6dd6dea
"""Tests of definitions/layernorm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "layernorm_h1152"
class TestLayernormH1152:
    OP_TYPE = "layernorm"
    NAME = "layernorm_h1152"
    FAMILY = "layernorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
        bias="bias",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ()
    HIDDEN_SIZE = 1152
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
        conftest.size("small", batch_size=128),
        conftest.size("medium", batch_size=513),
        conftest.size("large", batch_size=16384),
    )
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (5e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, weight, bias):
    rows = hidden_states.float()
    centred = rows - rows.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    normed = centred * torch.rsqrt(variance + EPSILON)
    return (normed * weight + bias).to(hidden_states.dtype)
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


# definition: "layernorm_h768"
class TestLayernormH768:
    OP_TYPE = "layernorm"
    NAME = "layernorm_h768"
    FAMILY = "layernorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
        bias="bias",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ()
    HIDDEN_SIZE = 768
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-05  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=256),
        conftest.size("medium", batch_size=513),
        conftest.size("large", batch_size=16384),
    )
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (5e-05, 1e-05, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(hidden_states, weight, bias):
    return F.layer_norm(hidden_states, hidden_states.shape[-1:], weight, bias, eps=1e-5)
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
