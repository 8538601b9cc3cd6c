# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 85c0c8d7d25fc09479c107c745eaf345
"""Tests of definitions/activation. conftest.py says how they run."""

import conftest


# definition: "gelu_and_mul_h5120"
class TestGeluAndMulH5120(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=257),
        conftest.size("medium", num_tokens=256),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.00146484375, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    share = 0.5 * (1 + torch.erf(gate / math.sqrt(2)))
    return (gate * share * up).to(input.dtype)
"""


# definition: "gelu_tanh_and_mul_h21504"
class TestGeluTanhAndMulH21504(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=257),
        conftest.size("medium", num_tokens=256),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.gelu(gate, approximate="tanh") * up).to(input.dtype)
"""


# definition: "silu_and_mul_h14336"
class TestSiluAndMulH14336(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=257),
        conftest.size("medium", num_tokens=256),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(input.dtype)
"""


# definition: "silu_and_mul_h2048"
class TestSiluAndMulH2048(conftest.DefinitionTests):
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
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=64),
        conftest.size("medium", num_tokens=513),
        conftest.size("medium", num_tokens=256),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("huge_gates", num_tokens=3),
    )
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(input):
    half = input.shape[-1] // 2
    gate, up = input[..., :half].float(), input[..., half:].float()
    output = gate * torch.sigmoid(gate) * up
    return output.to(input.dtype)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
