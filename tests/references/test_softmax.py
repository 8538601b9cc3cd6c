# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: d2b8d1196dbc24feb85d93ee048455e1
"""Tests of definitions/softmax. conftest.py says how they run."""

import conftest


# definition: "softmax_e256"
class TestSoftmaxE256(conftest.DefinitionTests):
    OP_TYPE = "softmax"
    NAME = "softmax_e256"
    FAMILY = "softmax"
    ROLES = conftest.constants(
        logits="logits",
    )
    OUTPUT_ROLES = conftest.constants(
        output="probs",
    )
    NUM_EXPERTS = 256
    AXES = conftest.constants(
        num_tokens=None,
        num_experts=NUM_EXPERTS,
    )
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=256),
        conftest.size("medium", num_tokens=4097),
        conftest.size("large", num_tokens=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", num_tokens=0),
        conftest.edge("one_left", num_tokens=9),
    )
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits):
    return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))
"""


# definition: "softmax_v128256"
class TestSoftmaxV128256(conftest.DefinitionTests):
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
    VOCAB_SIZE = 128256
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=129),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_left", batch_size=9),
    )
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits / temperature[:, None]
    return torch.softmax(scaled, dim=-1)
"""


# definition: "softmax_v151936"
class TestSoftmaxV151936(conftest.DefinitionTests):
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
    VOCAB_SIZE = 151936
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=129),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
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
            4.0,
        ],
    )
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits.float() / temperature
    exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
