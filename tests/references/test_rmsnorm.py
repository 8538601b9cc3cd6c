# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: f9dbddad72a91953b5bc9db8ca5387d0
"""Tests of definitions/rmsnorm. conftest.py says how they run."""

import conftest


# definition: "fused_add_rmsnorm_h4096"
class TestFusedAddRmsnormH4096(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "fused_add_rmsnorm_h4096"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        residual="residual",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        updated="residual_out",
    )
    HIDDEN_SIZE = 4096
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-05  # model:llama-3.1-8b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=64),
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

EPSILON = 1e-5


@torch.no_grad()
def run(hidden_states, residual, weight):
    # The sum is normed before it is rounded: only what leaves the function is bfloat16.
    rows = hidden_states.float() + residual.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    output = rows * torch.rsqrt(mean_square + EPSILON) * weight.float()
    return output.to(hidden_states.dtype), rows.to(residual.dtype)
"""


# definition: "fused_add_rmsnorm_h5120"
class TestFusedAddRmsnormH5120(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "fused_add_rmsnorm_h5120"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        residual="residual",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        updated="residual_out",
    )
    HIDDEN_SIZE = 5120
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:qwen3-14b
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
    output = rows * torch.rsqrt(mean_square + EPSILON) * weight.float()
    return output.to(hidden_states.dtype), rows.to(residual.dtype)
"""


# definition: "fused_add_rmsnorm_h7168"
class TestFusedAddRmsnormH7168(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "fused_add_rmsnorm_h7168"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        residual="residual",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 7168
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:deepseek-v3
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
def run(hidden_states, residual, weight):
    rows = hidden_states.float() + residual.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    output = rows * torch.rsqrt(mean_square + EPSILON) * weight.float()
    return output.to(hidden_states.dtype)
"""


# definition: "rmsnorm_h128"
class TestRmsnormH128(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h128"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 128
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:qwen3-30b-a3b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=256),
        conftest.size("medium", batch_size=4097),
        conftest.size("large", batch_size=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
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
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: "rmsnorm_h1536"
class TestRmsnormH1536(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h1536"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 1536
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:deepseek-v3
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=128),
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
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: "rmsnorm_h2048"
class TestRmsnormH2048(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h2048"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 2048
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:qwen3-30b-a3b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=128),
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
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: "rmsnorm_h4096"
class TestRmsnormH4096(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h4096"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 4096
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-05  # model:llama-3.1-8b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=64),
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

EPSILON = 1e-5


@torch.no_grad()
def run(hidden_states, weight):
    rows = hidden_states.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    normed = rows * torch.rsqrt(mean_square + EPSILON)
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: "rmsnorm_h5376"
class TestRmsnormH5376(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h5376"
    FAMILY = "rmsnorm"
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
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: "rmsnorm_h7168"
class TestRmsnormH7168(conftest.DefinitionTests):
    OP_TYPE = "rmsnorm"
    NAME = "rmsnorm_h7168"
    FAMILY = "rmsnorm"
    ROLES = conftest.constants(
        hidden="hidden_states",
        weight="weight",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    HIDDEN_SIZE = 7168
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:deepseek-v3
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
    return (normed * weight.float()).to(hidden_states.dtype)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
