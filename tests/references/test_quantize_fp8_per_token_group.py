# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 9108cf3e0ff27b1ab503d800117cddee
"""Tests of definitions/quantize_fp8_per_token_group. conftest.py says how they run."""

import conftest


# definition: "quantize_fp8_per_token_group_h128_g128"
class TestQuantizeFp8PerTokenGroupH128G128(conftest.DefinitionTests):
    OP_TYPE = "quantize_fp8_per_token_group"
    NAME = "quantize_fp8_per_token_group_h128_g128"
    FAMILY = "quantize_fp8_per_token_group"
    ROLES = conftest.constants(
        hidden="x",
    )
    OUTPUT_ROLES = conftest.constants(
        quantized="q",
        scale="s",
    )
    HIDDEN_SIZE = 128
    NUM_GROUPS = 1
    AXES = conftest.constants(
        num_tokens=None,
        hidden_size=HIDDEN_SIZE,
        num_groups=NUM_GROUPS,
    )
    EPS = 0.0001  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=256),
        conftest.size("medium", num_tokens=4097),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", num_tokens=0),)
    RULES = conftest.rules(
        None,  # q: reftest's kernels judge it
        [  # s
            (0.0, 4.76837158203125e-07, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(x):
    amax = x.abs().amax(dim=1, keepdim=True).clamp(1e-4)
    return (x * (448.0 / amax)).to(torch.float8_e4m3fn), amax * (1.0 / 448.0)
"""


# definition: "quantize_fp8_per_token_group_h256_g64"
class TestQuantizeFp8PerTokenGroupH256G64(conftest.DefinitionTests):
    OP_TYPE = "quantize_fp8_per_token_group"
    NAME = "quantize_fp8_per_token_group_h256_g64"
    FAMILY = "quantize_fp8_per_token_group"
    ROLES = conftest.constants(
        hidden="x",
    )
    OUTPUT_ROLES = conftest.constants(
        scale="s",
        quantized="q",
    )
    HIDDEN_SIZE = 256
    NUM_GROUPS = 4
    AXES = conftest.constants(
        num_tokens=None,
        hidden_size=HIDDEN_SIZE,
        num_groups=NUM_GROUPS,
    )
    EPS = 1e-10  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=256),
        conftest.size("medium", num_tokens=4097),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", num_tokens=0),)
    RULES = conftest.rules(
        [  # s
            (0.0, 4.76837158203125e-07, 1.0),
        ],
        None,  # q: reftest's kernels judge it
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(x):
    limit = torch.finfo(torch.float8_e4m3fn).max
    groups = x.float().unflatten(-1, (-1, 64))
    amax = groups.abs().amax(-1).clamp_min(1e-10)
    factor = limit / amax
    quantized = (groups * factor.unsqueeze(-1)).clamp(-limit, limit)
    return amax / limit, quantized.flatten(-2).to(torch.float8_e4m3fn)
"""


# definition: "quantize_fp8_per_token_group_h7168_g128"
class TestQuantizeFp8PerTokenGroupH7168G128(conftest.DefinitionTests):
    OP_TYPE = "quantize_fp8_per_token_group"
    NAME = "quantize_fp8_per_token_group_h7168_g128"
    FAMILY = "quantize_fp8_per_token_group"
    ROLES = conftest.constants(
        hidden="x",
    )
    OUTPUT_ROLES = conftest.constants(
        quantized="q",
        scale="s",
    )
    HIDDEN_SIZE = 7168
    NUM_GROUPS = 56
    AXES = conftest.constants(
        num_tokens=None,
        hidden_size=HIDDEN_SIZE,
        num_groups=NUM_GROUPS,
    )
    EPS = 1e-10  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=32),
        conftest.size("medium", num_tokens=513),
        conftest.size("medium", num_tokens=256),
        conftest.size("large", num_tokens=16384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (conftest.edge("no_rows", num_tokens=0),)
    RULES = conftest.rules(
        None,  # q: reftest's kernels judge it
        [  # s
            (0.0, 4.76837158203125e-07, 1.0),
        ],
    )
    REFERENCE = """\
import torch

GROUP_SIZE = 128
EPS = 1e-10
FP8_MAX = 448.0


@torch.no_grad()
def run(x):
    tokens, hidden = x.shape
    groups = x.float().view(tokens, hidden // GROUP_SIZE, GROUP_SIZE)
    amax = groups.abs().amax(dim=-1, keepdim=True).clamp(min=EPS)
    scale = amax / FP8_MAX
    q = (groups / scale).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)
    return q.view(tokens, hidden), scale.squeeze(-1)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
