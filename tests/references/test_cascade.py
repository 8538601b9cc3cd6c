# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: d1266b60088b4c838fcc91ae10bbdb69
"""Tests of definitions/cascade. conftest.py says how they run."""

import conftest


# definition: "merge_state_h32_d128"
class TestMergeStateH32D128(conftest.DefinitionTests):
    OP_TYPE = "cascade"
    NAME = "merge_state_h32_d128"
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v_a",
        s="s_a",
        v_other="v_b",
        s_other="s_b",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v_merged",
        s_merged="s_merged",
    )
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=256),
        conftest.size("medium", seq_len=513),
        conftest.size("large", seq_len=8192),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("all_empty", seq_len=11),
    )
    RULES = conftest.rules(
        [  # v_merged
            (5e-05, 0.0078125, 1.0),
        ],
        [  # s_merged
            (0.0001, 1e-06, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(v_a, s_a, v_b, s_b):
    largest = torch.maximum(s_a, s_b).clamp(min=-1e30)
    weight_a, weight_b = torch.exp2(s_a - largest), torch.exp2(s_b - largest)
    total = weight_a + weight_b
    v = v_a.float() * (weight_a / total)[..., None] + v_b.float() * (weight_b / total)[..., None]
    v = torch.where(total[..., None] > 0, v, 0.0)
    return v.to(v_a.dtype), largest + torch.log2(total)
"""


# definition: "merge_state_in_place_h32_d128"
class TestMergeStateInPlaceH32D128(conftest.DefinitionTests):
    OP_TYPE = "cascade"
    NAME = "merge_state_in_place_h32_d128"
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v",
        s="s",
        v_other="v_other",
        s_other="s_other",
        mask="mask",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v",
        s_merged="s",
    )
    NUM_HEADS = 32
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    LEAVES = conftest.constants(
        v="v",
        s="s",
    )
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=256),
        conftest.size("medium", seq_len=513),
        conftest.size("large", seq_len=8192),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("all_empty", seq_len=11),
        conftest.edge("none_merged", seq_len=11),
    )
    RULES = conftest.rules(
        [  # v
            (5e-05, 0.0009765625, 1.0),
        ],
        [  # s
            (0.0001, 1e-06, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(v, s, v_other, s_other, mask):
    merged = torch.logaddexp2(s, s_other)
    mine, theirs = torch.exp2(s - merged), torch.exp2(s_other - merged)
    mine, theirs = mine.nan_to_num(0.0), theirs.nan_to_num(0.0)
    sum_of_both = v.float() * mine[..., None] + v_other.float() * theirs[..., None]
    v.copy_(torch.where(mask[:, None, None], sum_of_both.to(v.dtype), v))
    s.copy_(torch.where(mask[:, None], merged, s))
    return v, s
"""


# definition: "merge_states_h8_d128"
class TestMergeStatesH8D128(conftest.DefinitionTests):
    OP_TYPE = "cascade"
    NAME = "merge_states_h8_d128"
    FAMILY = "cascade"
    ROLES = conftest.constants(
        v="v",
        s="s",
    )
    OUTPUT_ROLES = conftest.constants(
        v_merged="v_merged",
        s_merged="s_merged",
    )
    MODES = ("many",)
    NUM_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        seq_len=None,
        num_states=None,
        num_heads=NUM_HEADS,
        head_dim=HEAD_DIM,
    )
    SIZES = (
        conftest.size("small", seq_len=1, num_states=2),
        conftest.size("small", seq_len=16, num_states=257),
        conftest.size("medium", seq_len=513, num_states=9),
        conftest.size("medium", seq_len=256, num_states=2),
        conftest.size("large", seq_len=8192, num_states=8),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0, num_states=2),
        conftest.edge("one_state", seq_len=11, num_states=1),
        conftest.edge("all_empty", seq_len=11, num_states=2),
    )
    RULES = conftest.rules(
        [  # v_merged
            (5e-05, 0.0078125, 1.0),
        ],
        [  # s_merged
            (0.0001, 1e-06, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(v, s):
    natural = s * math.log(2)
    total = torch.logsumexp(natural, dim=1)
    weights = torch.exp(natural - total[:, None]).nan_to_num(0.0)
    merged = (v.float() * weights[..., None]).sum(dim=1)
    return merged.to(v.dtype), total / math.log(2)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
