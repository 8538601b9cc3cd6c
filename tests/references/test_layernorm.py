# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 52d90e65be7b3679591393a4919944c0
"""Tests of definitions/layernorm. conftest.py says how they run."""

import conftest


# definition: "layernorm_h1152"
class TestLayernormH1152(conftest.DefinitionTests):
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
    HIDDEN_SIZE = 1152
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # description
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
            (5e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "layernorm_h768"
class TestLayernormH768(conftest.DefinitionTests):
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
    HIDDEN_SIZE = 768
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-05  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=256),
        conftest.size("medium", batch_size=513),
        conftest.size("large", batch_size=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", batch_size=0),)
    RULES = conftest.rules(
        [  # output
            (5e-05, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(hidden_states, weight, bias):
    return F.layer_norm(hidden_states, hidden_states.shape[-1:], weight, bias, eps=1e-5)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
