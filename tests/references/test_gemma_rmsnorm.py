# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 416db491bd72ee3b1a8fe51c4945d57f
"""Tests of definitions/gemma_rmsnorm. conftest.py says how they run."""

import conftest


# definition: "gemma_fused_add_rmsnorm_h4608"
class TestGemmaFusedAddRmsnormH4608(conftest.DefinitionTests):
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
    HIDDEN_SIZE = 4608
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:gemma-2-27b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=513),
        conftest.size("medium", batch_size=256),
        conftest.size("large", batch_size=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
        [  # residual_out
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
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


# definition: "gemma_rmsnorm_h5376"
class TestGemmaRmsnormH5376(conftest.DefinitionTests):
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
    HIDDEN_SIZE = 5376
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:gemma-3-27b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=513),
        conftest.size("medium", batch_size=256),
        conftest.size("large", batch_size=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
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


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
