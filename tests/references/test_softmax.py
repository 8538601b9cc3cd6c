# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 2558789223559301da30c7b5dab9fae6
"""Tests of definitions/softmax. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "softmax_e256"
class TestSoftmaxE256:
    OP_TYPE = "softmax"
    NAME = "softmax_e256"
    FAMILY = "softmax"
    ROLES = conftest.constants(
        logits="logits",
    )
    OUTPUT_ROLES = conftest.constants(
        output="probs",
    )
    MODES = ()
    NUM_EXPERTS = 256
    AXES = conftest.constants(
        num_tokens=None,
        num_experts=NUM_EXPERTS,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=256),
        conftest.size("medium", num_tokens=513),
        conftest.size("large", num_tokens=1024),
    )
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("one_left", num_tokens=9),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits):
    return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))
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


# definition: "softmax_v128256"
class TestSoftmaxV128256:
    OP_TYPE = "softmax"
    NAME = "softmax_v128256"
    FAMILY = "softmax"
    ROLES = conftest.constants(
        logits="logits",
        temperature="temperature",
    )
    OUTPUT_ROLES = conftest.constants(
        output="probs",
    )
    MODES = ()
    VOCAB_SIZE = 128256
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=65),
        conftest.size("large", batch_size=1024),
    )
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_left", batch_size=9),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits / temperature[:, None]
    return torch.softmax(scaled, dim=-1)
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


# definition: "softmax_v151936"
class TestSoftmaxV151936:
    OP_TYPE = "softmax"
    NAME = "softmax_v151936"
    FAMILY = "softmax"
    ROLES = conftest.constants(
        logits="logits",
        temperature="temperature",
    )
    OUTPUT_ROLES = conftest.constants(
        output="probs",
    )
    MODES = ()
    VOCAB_SIZE = 151936
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=65),
        conftest.size("large", batch_size=1024),
    )
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_left", batch_size=9),
    )
    SCALARS = conftest.constants(
        temperature=[
            0.3,
            4.0,
            0.15,
            4.0,
        ],
    )
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits.float() / temperature
    exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
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
