# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: efe730e31513b566f47cbff33f9c819a
"""Tests of definitions/rope. conftest.py says how they run."""

import conftest


# definition: "llama31_rope_pos_ids_h32_kv8_d128"
class TestLlama31RopePosIdsH32Kv8D128(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "llama31_rope_pos_ids_h32_kv8_d128"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q",
        k="k",
        positions="pos_ids",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_rope",
        k_out="k_rope",
    )
    MODES = ("llama31",)
    NUM_Q_HEADS = 32
    NUM_K_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        head_dim=HEAD_DIM,
    )
    ROPE_THETA = 500000.0  # model:llama-3.1-8b
    ROPE_SCALE = 8.0  # model:llama-3.1-8b
    LOW_FREQ_FACTOR = 1.0  # model:llama-3.1-8b
    HIGH_FREQ_FACTOR = 4.0  # model:llama-3.1-8b
    OLD_CONTEXT_LEN = 8192.0  # model:llama-3.1-8b
    CONSTANTS = conftest.constants(
        rope_theta=ROPE_THETA,
        rope_scale=ROPE_SCALE,
        low_freq_factor=LOW_FREQ_FACTOR,
        high_freq_factor=HIGH_FREQ_FACTOR,
        old_context_len=OLD_CONTEXT_LEN,
    )
    SIZES = (
        conftest.size("small", nnz=1),
        conftest.size("small", nnz=256),
        conftest.size("medium", nnz=513),
        conftest.size("large", nnz=65536),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", nnz=0),
        conftest.edge("first_position", nnz=5),
    )
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0078125, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch

THETA = 500000.0
SCALE = 8.0
LOW, HIGH = 1.0, 4.0
OLD_CONTEXT = 8192


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@torch.no_grad()
def run(q, k, pos_ids):
    dim = q.shape[-1]
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=q.device) / dim
    fast = THETA ** -exponents
    slow = fast / SCALE
    turns = OLD_CONTEXT * fast / (2 * math.pi)
    part = ((turns - LOW) / (HIGH - LOW)).clamp(0, 1)
    frequencies = part * fast + (1 - part) * slow
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""


# definition: "rope_pos_ids_h32_kv8_d128"
class TestRopePosIdsH32Kv8D128(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "rope_pos_ids_h32_kv8_d128"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q",
        k="k",
        positions="pos_ids",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_rope",
        k_out="k_rope",
    )
    NUM_Q_HEADS = 32
    NUM_K_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        head_dim=HEAD_DIM,
    )
    ROPE_THETA = 1e06  # model:qwen3-8b
    CONSTANTS = conftest.constants(
        rope_theta=ROPE_THETA,
    )
    SIZES = (
        conftest.size("small", nnz=1),
        conftest.size("small", nnz=256),
        conftest.size("medium", nnz=513),
        conftest.size("large", nnz=65536),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", nnz=0),
        conftest.edge("first_position", nnz=5),
    )
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0078125, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch

THETA = 1000000.0


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@torch.no_grad()
def run(q, k, pos_ids):
    dim = q.shape[-1]
    exponents = torch.arange(0, dim, 2, dtype=torch.float32, device=q.device) / dim
    frequencies = THETA ** -exponents
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""


# definition: "rope_pos_ids_interleaved_given_d64"
class TestRopePosIdsInterleavedGivenD64(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "rope_pos_ids_interleaved_given_d64"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q",
        k="k",
        positions="pos_ids",
        rotary_dim="rotary_dim",
        interleave="interleave",
        scale="rope_scale",
        theta="rope_theta",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_rope",
        k_out="k_rope",
    )
    HEAD_DIM = 64
    AXES = conftest.constants(
        nnz=None,
        num_q_heads=None,
        num_k_heads=None,
        head_dim=HEAD_DIM,
    )
    SIZES = (
        conftest.size("small", nnz=1, num_q_heads=37, num_k_heads=9),
        conftest.size("small", nnz=256, num_q_heads=67, num_k_heads=34),
        conftest.size("medium", nnz=513, num_q_heads=5, num_k_heads=2),
        conftest.size("medium", nnz=4097, num_q_heads=1, num_k_heads=1),
        conftest.size("large", nnz=65536, num_q_heads=5, num_k_heads=2),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", nnz=0, num_q_heads=37, num_k_heads=9),
        conftest.edge("first_position", nnz=5, num_q_heads=37, num_k_heads=9),
    )
    SCALARS = conftest.constants(
        rotary_dim=[
            16,
            48,
            32,
            32,
            32,
        ],
        interleave=[
            True,
            False,
            True,
            True,
            False,
        ],
        rope_scale=[2.5],
        rope_theta=[30000.0],
    )
    RULES = conftest.rules(
        [  # q_rope
            (0.0025, 0.0009765625, 1.0),
        ],
        [  # k_rope
            (0.0025, 0.0009765625, 1.0),
        ],
    )
    REFERENCE = """\
import torch


def rotate(x, cos, sin, rotary_dim, interleave):
    turning, resting = x[..., :rotary_dim].float(), x[..., rotary_dim:]
    if interleave:
        one, other = turning[..., 0::2], turning[..., 1::2]
    else:
        one, other = turning.chunk(2, dim=-1)
    pair = (one * cos - other * sin, other * cos + one * sin)
    rotated = torch.stack(pair, dim=-1).flatten(-2) if interleave else torch.cat(pair, dim=-1)
    return torch.cat((rotated.to(x.dtype), resting), dim=-1)


@torch.no_grad()
def run(q, k, pos_ids, rotary_dim, interleave, rope_scale, rope_theta):
    exponents = torch.arange(0, rotary_dim, 2, dtype=torch.float32, device=q.device) / rotary_dim
    frequencies = rope_theta ** -exponents / rope_scale
    angles = pos_ids.float()[:, None, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return rotate(q, cos, sin, rotary_dim, interleave), rotate(k, cos, sin, rotary_dim, interleave)
"""


# definition: "rope_with_cos_sin_cache_interleaved_d64"
class TestRopeWithCosSinCacheInterleavedD64(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_interleaved_d64"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q_pe",
        k="k_pe",
        cos_sin_cache="cos_sin_cache",
        positions="positions",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_pe_out",
        k_out="k_pe_out",
    )
    MODES = ("interleaved",)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 1
    HEAD_SIZE = 64
    ROTARY_DIM = 64
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    SIZES = (
        conftest.size("small", num_tokens=1, max_seq_len=64),
        conftest.size("small", num_tokens=256, max_seq_len=64),
        conftest.size("medium", num_tokens=513, max_seq_len=40960),
        conftest.size("large", num_tokens=65536, max_seq_len=131072),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", num_tokens=0, max_seq_len=64),
        conftest.edge("first_position", num_tokens=5, max_seq_len=64),
        conftest.edge("last_position", num_tokens=5, max_seq_len=64),
    )
    RULES = conftest.rules(
        [  # q_pe_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_pe_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch


def rotate(x, cos, sin):
    even, odd = x[..., 0::2].float(), x[..., 1::2].float()
    pairs = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return pairs.flatten(-2).to(x.dtype)


@torch.no_grad()
def run(q_pe, k_pe, cos_sin_cache, positions):
    rows = cos_sin_cache[positions.long()].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q_pe, cos, sin), rotate(k_pe, cos, sin)
"""


# definition: "rope_with_cos_sin_cache_neox_style_d128_rd128"
class TestRopeWithCosSinCacheNeoxStyleD128Rd128(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_neox_style_d128_rd128"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q",
        k="k",
        cos_sin_cache="cos_sin_cache",
        positions="positions",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_out",
        k_out="k_out",
    )
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_SIZE = 128
    ROTARY_DIM = 128
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=NUM_QO_HEADS,
        num_kv_heads=NUM_KV_HEADS,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    SIZES = (
        conftest.size("small", num_tokens=1, max_seq_len=64),
        conftest.size("small", num_tokens=256, max_seq_len=64),
        conftest.size("medium", num_tokens=513, max_seq_len=40960),
        conftest.size("large", num_tokens=65536, max_seq_len=131072),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", num_tokens=0, max_seq_len=64),
        conftest.edge("first_position", num_tokens=5, max_seq_len=64),
        conftest.edge("last_position", num_tokens=5, max_seq_len=64),
    )
    RULES = conftest.rules(
        [  # q_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch


def rotate(x, cos, sin):
    first, second = x.float().chunk(2, dim=-1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return rotated.to(x.dtype)


@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    rows = cos_sin_cache[positions].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""


# definition: "rope_with_cos_sin_cache_neox_style_d128_rd64"
class TestRopeWithCosSinCacheNeoxStyleD128Rd64(conftest.DefinitionTests):
    OP_TYPE = "rope"
    NAME = "rope_with_cos_sin_cache_neox_style_d128_rd64"
    FAMILY = "rope"
    ROLES = conftest.constants(
        q="q",
        k="k",
        cos_sin_cache="cos_sin_cache",
        positions="positions",
    )
    OUTPUT_ROLES = conftest.constants(
        q_out="q_out",
        k_out="k_out",
    )
    HEAD_SIZE = 128
    ROTARY_DIM = 64
    AXES = conftest.constants(
        num_tokens=None,
        num_qo_heads=None,
        num_kv_heads=None,
        head_size=HEAD_SIZE,
        max_seq_len=None,
        rotary_dim=ROTARY_DIM,
    )
    SIZES = (
        conftest.size(
            "small",
            num_tokens=1,
            num_qo_heads=37,
            num_kv_heads=9,
            max_seq_len=64,
        ),
        conftest.size(
            "small",
            num_tokens=256,
            num_qo_heads=67,
            num_kv_heads=34,
            max_seq_len=64,
        ),
        conftest.size(
            "medium",
            num_tokens=513,
            num_qo_heads=5,
            num_kv_heads=2,
            max_seq_len=40960,
        ),
        conftest.size(
            "medium",
            num_tokens=4097,
            num_qo_heads=1,
            num_kv_heads=1,
            max_seq_len=64,
        ),
        conftest.size(
            "large",
            num_tokens=65536,
            num_qo_heads=5,
            num_kv_heads=2,
            max_seq_len=131072,
        ),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge(
            "no_tokens",
            num_tokens=0,
            num_qo_heads=37,
            num_kv_heads=9,
            max_seq_len=64,
        ),
        conftest.edge(
            "first_position",
            num_tokens=5,
            num_qo_heads=37,
            num_kv_heads=9,
            max_seq_len=64,
        ),
        conftest.edge(
            "last_position",
            num_tokens=5,
            num_qo_heads=37,
            num_kv_heads=9,
            max_seq_len=64,
        ),
    )
    RULES = conftest.rules(
        [  # q_out
            (1e-06, 0.0078125, 1.0),
        ],
        [  # k_out
            (1e-06, 0.0078125, 1.0),
        ],
    )
    REFERENCE = """\
import torch

ROTARY_DIM = 64


def rotate(x, cos, sin):
    turning, resting = x[..., :ROTARY_DIM].float(), x[..., ROTARY_DIM:]
    first, second = turning.chunk(2, dim=-1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return torch.cat((rotated.to(x.dtype), resting), dim=-1)


@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    rows = cos_sin_cache[positions].unsqueeze(1)
    cos, sin = rows.chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
