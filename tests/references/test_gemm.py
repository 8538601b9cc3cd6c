# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: aafcc1b4454333add75808acd4b9d3fe
"""Tests of definitions/gemm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def gemm_inputs(definition, axes, device="cpu", seed=0):
    """Multiples of 1/128 on [-1, 1): products and their sums are exact in float32, so that rounding tells nothing apart
    but what is really wrong. One element in 128 of the first matrix is large."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = torch.randint(-128, 128, shape, generator=generator) / 128
        if not inputs:
            large = torch.randint(0, 128, shape, generator=generator) == 0
            values = torch.where(large, values * 8, values)
        inputs[name] = values.to(dtype).to(device)
    return inputs


def gemm_torch(test, inputs):
    """In float64, whichever of B's axes is the one that A has too."""
    definition = conftest.definition_of(test)
    (a, b), (output,) = definition["inputs"], definition["outputs"].values()
    if definition["inputs"][a]["shape"][:-1] != output["shape"][:-1]:
        a, b = b, a
    left = inputs[a].double()
    right = inputs[b].double()
    if definition["inputs"][b]["shape"][-1] == definition["inputs"][a]["shape"][-1]:
        right = right.mT
    return torch.matmul(left, right).to(conftest.dtype_of(output))


# definition: "gemm_bf16_n128_k2048"
class TestGemmBf16N128K2048:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n128_k2048"
    VARIANT = 0  # of op family gemm
    N = 128
    K = 2048
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("large", M=4096),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.08838834764831845, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gemm_torch,)
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemm_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
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


# definition: "gemm_bf16_n2048_k5376"
class TestGemmBf16N2048K5376:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n2048_k5376"
    VARIANT = 0  # of op family gemm
    N = 2048
    K = 5376
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("large", M=4096),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.14320549046737, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gemm_torch,)
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemm_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
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


# definition: "gemm_bf16_n576_k7168"
class TestGemmBf16N576K7168:
    OP_TYPE = "gemm"
    NAME = "gemm_bf16_n576_k7168"
    VARIANT = 0  # of op family gemm
    N = 576
    K = 7168
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("large", M=4096),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.16535945694153692, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gemm_torch,)
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemm_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
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


# definition: "gemm_n1024_k4096"
class TestGemmN1024K4096:
    OP_TYPE = "gemm"
    NAME = "gemm_n1024_k4096"
    VARIANT = 0  # of op family gemm
    N = 1024
    K = 4096
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("large", M=4096),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gemm_torch,)
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemm_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
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


# definition: "gemm_n4096_k4096"
class TestGemmN4096K4096:
    OP_TYPE = "gemm"
    NAME = "gemm_n4096_k4096"
    VARIANT = 0  # of op family gemm
    N = 4096
    K = 4096
    AXES = conftest.constants(
        M=None,
        N=N,
        K=K,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=321),
        conftest.size("large", M=4096),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gemm_torch,)
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemm_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
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
