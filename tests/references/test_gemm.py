# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 914a52ae37c3bc1c28bf29c9ae8fddfc
"""Tests of definitions/gemm. conftest.py says how they run."""

import conftest


# definition: "gemm_bf16_n128_k2048"
class TestGemmBf16N128K2048(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=32),
        conftest.size("medium", M=513),
        conftest.size("medium", M=128),
        conftest.size("medium", M=64),
        conftest.size("medium", M=16),
        conftest.size("medium", M=31),
        conftest.size("medium", M=65),
        conftest.size("medium", M=127),
        conftest.size("medium", M=256),
        conftest.size("medium", M=4097),
        conftest.size("large", M=4096),
    )
    RUNS = (
        (1, 2, 1),
        (1, 2, 1),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2),
        (1, 2, 1),
    )
    EDGES = (
        conftest.edge("no_rows", M=0),
        conftest.edge("many_rows", M=4097),
    )
    RULES = conftest.rules(
        [  # C
            (0.08838834764831845, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""


# definition: "gemm_bf16_n2048_k5376"
class TestGemmBf16N2048K5376(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=256),
        conftest.size("medium", M=513),
        conftest.size("large", M=4096),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", M=0),
        conftest.edge("many_rows", M=513),
    )
    RULES = conftest.rules(
        [  # C
            (0.14320549046737, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""


# definition: "gemm_bf16_n576_k7168"
class TestGemmBf16N576K7168(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=256),
        conftest.size("medium", M=513),
        conftest.size("large", M=4096),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", M=0),
        conftest.edge("many_rows", M=2049),
    )
    RULES = conftest.rules(
        [  # C
            (0.16535945694153692, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a bfloat16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""


# definition: "gemm_n1024_k4096"
class TestGemmN1024K4096(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=256),
        conftest.size("medium", M=513),
        conftest.size("large", M=4096),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", M=0),
        conftest.edge("many_rows", M=2049),
    )
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""


# definition: "gemm_n4096_k4096"
class TestGemmN4096K4096(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", M=1),
        conftest.size("small", M=256),
        conftest.size("medium", M=513),
        conftest.size("large", M=4096),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", M=0),
        conftest.edge("many_rows", M=513),
    )
    RULES = conftest.rules(
        [  # C
            (0.0625, 0.0009765625, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(A, B):
    # Products and sums in float32, one rounding at the end, whatever a float16 matmul would do on this device.
    return torch.matmul(A.float(), B.float().T).to(A.dtype)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
