# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 3fc972fc6b7c4fcfa1934b6751a32f84
"""Tests of definitions/gemm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


# definition: "gemm_bf16_n128_k2048"
class TestGemmBf16N128K2048:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n128_k2048"
    FAMILY = "gemm"
    ROLES = conftest.constants(
        a="A",
        b="B",
    )
    OUTPUT_ROLES = conftest.constants(
        output="C",
    )
    MODES = ("transposed_b",)
    N = 128
    K = 2048
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("medium", M=128),
        conftest.size("medium", M=64),
        conftest.size("medium", M=16),
        conftest.size("medium", M=31),
        conftest.size("medium", M=65),
        conftest.size("medium", M=127),
        conftest.size("medium", M=256),
        conftest.size("large", M=4096),
    )
    EDGES = (conftest.edge("no_rows", M=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.08838834764831845, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
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


# definition: "gemm_bf16_n2048_k5376"
class TestGemmBf16N2048K5376:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n2048_k5376"
    FAMILY = "gemm"
    ROLES = conftest.constants(
        a="A",
        b="B",
    )
    OUTPUT_ROLES = conftest.constants(
        output="C",
    )
    MODES = ("transposed_b",)
    N = 2048
    K = 5376
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("medium", M=128),
        conftest.size("large", M=4096),
    )
    EDGES = (conftest.edge("no_rows", M=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.14320549046737, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
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


# definition: "gemm_bf16_n576_k7168"
class TestGemmBf16N576K7168:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n576_k7168"
    FAMILY = "gemm"
    ROLES = conftest.constants(
        a="A",
        b="B",
    )
    OUTPUT_ROLES = conftest.constants(
        output="C",
    )
    MODES = ("transposed_b",)
    N = 576
    K = 7168
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("medium", M=128),
        conftest.size("large", M=4096),
    )
    EDGES = (conftest.edge("no_rows", M=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.16535945694153692, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
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


# definition: "gemm_n1024_k4096"
class TestGemmN1024K4096:
    OP_TYPE = "gemm"
    NAME = "gemm_n1024_k4096"
    FAMILY = "gemm"
    ROLES = conftest.constants(
        a="A",
        b="B",
    )
    OUTPUT_ROLES = conftest.constants(
        output="C",
    )
    MODES = ("transposed_b",)
    N = 1024
    K = 4096
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("medium", M=128),
        conftest.size("large", M=4096),
    )
    EDGES = (conftest.edge("no_rows", M=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
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


# definition: "gemm_n4096_k4096"
class TestGemmN4096K4096:
    OP_TYPE = "gemm"
    NAME = "gemm_n4096_k4096"
    FAMILY = "gemm"
    ROLES = conftest.constants(
        a="A",
        b="B",
    )
    OUTPUT_ROLES = conftest.constants(
        output="C",
    )
    MODES = ("transposed_b",)
    N = 4096
    K = 4096
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    PROBE = None
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("medium", M=128),
        conftest.size("large", M=4096),
    )
    EDGES = (conftest.edge("no_rows", M=0),)
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    SAMPLES = False
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
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
