# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 2602c2e7aef76461fab60325434fcdf2
"""Tests of definitions/activation. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "gelu_and_mul_h5120"
class TestGeluAndMulH5120:
    OP_TYPE = "activation"
    NAME = "gelu_and_mul_h5120"
    FAMILY = "activation"
    ROLES = conftest.constants(
        hidden="input",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("gelu",)
    GATE_AND_UP_SIZE = 10240
    INTERMEDIATE_SIZE = 5120
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=129),
        conftest.size("large", num_tokens=16384),
    )
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.00146484375, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    share = 0.5 * (1 + torch.erf(gate / math.sqrt(2)))
    return (gate * share * up).to(input.dtype)
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


# definition: "gelu_tanh_and_mul_h21504"
class TestGeluTanhAndMulH21504:
    OP_TYPE = "activation"
    NAME = "gelu_tanh_and_mul_h21504"
    FAMILY = "activation"
    ROLES = conftest.constants(
        hidden="input",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("gelu_tanh",)
    GATE_AND_UP_SIZE = 43008
    INTERMEDIATE_SIZE = 21504
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=65),
        conftest.size("large", num_tokens=16384),
    )
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.gelu(gate, approximate="tanh") * up).to(input.dtype)
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


# definition: "silu_and_mul_h14336"
class TestSiluAndMulH14336:
    OP_TYPE = "activation"
    NAME = "silu_and_mul_h14336"
    FAMILY = "activation"
    ROLES = conftest.constants(
        hidden="input",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("silu",)
    GATE_AND_UP_SIZE = 28672
    INTERMEDIATE_SIZE = 14336
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=65),
        conftest.size("large", num_tokens=16384),
    )
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(input.dtype)
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


# definition: "silu_and_mul_h2048"
class TestSiluAndMulH2048:
    OP_TYPE = "activation"
    NAME = "silu_and_mul_h2048"
    FAMILY = "activation"
    ROLES = conftest.constants(
        hidden="input",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("silu",)
    GATE_AND_UP_SIZE = 4096
    INTERMEDIATE_SIZE = 2048
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=64),
        conftest.size("medium", num_tokens=321),
        conftest.size("large", num_tokens=16384),
    )
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(input):
    half = input.shape[-1] // 2
    gate, up = input[..., :half].float(), input[..., half:].float()
    output = gate * torch.sigmoid(gate) * up
    return output.to(input.dtype)
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
