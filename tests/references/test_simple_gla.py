# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 85b26aedbf6f0a4a42c658558023fe74
"""Tests of definitions/simple_gla. conftest.py says how they run."""

import conftest


# definition: "simple_gla_chunk_h8_d64"
class TestSimpleGlaChunkH8D64(conftest.DefinitionTests):
    OP_TYPE = "simple_gla"
    NAME = "simple_gla_chunk_h8_d64"
    FAMILY = "simple_gla"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 8
    HEAD_SIZE = 64
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        num_heads=NUM_HEADS,
        head_size=HEAD_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=3),
        conftest.size("small", batch_size=2, seq_len=81),
        conftest.size("medium", batch_size=1, seq_len=256),
        conftest.size("medium", batch_size=1, seq_len=1025),
        conftest.size("medium", batch_size=257, seq_len=1),
        conftest.size("medium", batch_size=256, seq_len=1),
        conftest.size("large", batch_size=4, seq_len=2048),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1,), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, seq_len=0),
        conftest.edge("one_token", batch_size=1, seq_len=1),
        conftest.edge("no_tokens", batch_size=2, seq_len=0),
        conftest.edge("forgets_all", batch_size=2, seq_len=9),
    )
    RULES = conftest.rules(
        [  # output
            (3.0517578125e-05, 0.001953125, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch

CHUNK = 64


@torch.no_grad()
def run(q, k, v, g):
    # [batch, heads, tokens, \u2026]
    query, key, value, gate = (x.float().transpose(1, 2) for x in (q, k, v, g))
    query = query * q.shape[-1] ** -0.5

    state = value.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    output = torch.empty_like(value)
    for start in range(0, q.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        total = gate[:, :, part].cumsum(dim=-1)
        left = torch.exp((total[..., :, None] - total[..., None, :]).clamp(max=0))
        scores = (query[:, :, part] @ key[:, :, part].transpose(-1, -2) * left).tril()
        earlier = (query[:, :, part] * torch.exp(total)[..., None]) @ state
        output[:, :, part] = scores @ value[:, :, part] + earlier
        last = total[..., -1:]
        kept = torch.exp(last - total)[..., None] * key[:, :, part]
        state = torch.exp(last)[..., None] * state + kept.transpose(-1, -2) @ value[:, :, part]
    return output.transpose(1, 2).to(v.dtype), state
"""


# definition: "simple_gla_parallel_h4_d64"
class TestSimpleGlaParallelH4D64(conftest.DefinitionTests):
    OP_TYPE = "simple_gla"
    NAME = "simple_gla_parallel_h4_d64"
    FAMILY = "simple_gla"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    NUM_HEADS = 4
    HEAD_SIZE = 64
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        num_heads=NUM_HEADS,
        head_size=HEAD_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=3),
        conftest.size("small", batch_size=2, seq_len=81),
        conftest.size("medium", batch_size=1, seq_len=256),
        conftest.size("medium", batch_size=1, seq_len=1025),
        conftest.size("medium", batch_size=513, seq_len=1),
        conftest.size("medium", batch_size=256, seq_len=1),
        conftest.size("large", batch_size=4, seq_len=2048),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1,), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, seq_len=0),
        conftest.edge("one_token", batch_size=1, seq_len=1),
        conftest.edge("no_tokens", batch_size=2, seq_len=0),
        conftest.edge("forgets_all", batch_size=2, seq_len=9),
    )
    RULES = conftest.rules(
        [  # output
            (3.0517578125e-05, 0.01, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(q, k, v, g):
    total = g.float().cumsum(dim=1).transpose(1, 2)
    left = torch.exp((total[..., :, None] - total[..., None, :]).clamp(max=0)).tril()
    scores = torch.einsum("bihd,bjhd->bhij", q.float(), k.float()) * q.shape[-1] ** -0.5
    return torch.einsum("bhij,bjhd->bihd", scores * left, v.float()).to(v.dtype)
"""


# definition: "simple_gla_varlen_gamma_h4_k64_v128"
class TestSimpleGlaVarlenGammaH4K64V128(conftest.DefinitionTests):
    OP_TYPE = "simple_gla"
    NAME = "simple_gla_varlen_gamma_h4_k64_v128"
    FAMILY = "simple_gla"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gamma="g_gamma",
        cu_seqlens="cu_seqlens",
        scale="scale",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 4
    KEY_SIZE = 64
    VALUE_SIZE = 128
    AXES = conftest.constants(
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_heads=NUM_HEADS,
        key_size=KEY_SIZE,
        value_size=VALUE_SIZE,
    )
    SIZES = (
        conftest.size("small", total_seq_len=5, num_seqs=1, len_cu_seqlens=2),
        conftest.size("small", total_seq_len=130, num_seqs=2, len_cu_seqlens=3),
        conftest.size("medium", total_seq_len=1281, num_seqs=65, len_cu_seqlens=66),
        conftest.size("medium", total_seq_len=256, num_seqs=64, len_cu_seqlens=65),
        conftest.size("large", total_seq_len=16384, num_seqs=8, len_cu_seqlens=9),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (
        conftest.edge("no_sequences", total_seq_len=0, num_seqs=0, len_cu_seqlens=1),
        conftest.edge("one_token", total_seq_len=1, num_seqs=1, len_cu_seqlens=2),
        conftest.edge("no_tokens", total_seq_len=0, num_seqs=2, len_cu_seqlens=3),
        conftest.edge(
            "empty_sequences",
            total_seq_len=12,
            num_seqs=5,
            len_cu_seqlens=6,
        ),
        conftest.edge("forgets_all", total_seq_len=9, num_seqs=2, len_cu_seqlens=3),
    )
    SCALARS = conftest.constants(
        scale=[
            0.15625,
            0.15625,
            0.0375,
            0.0375,
            0.0375,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (7.253885269165039e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (0.0001220703125, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(q, k, v, g_gamma, cu_seqlens, scale, initial_state):
    scale = scale or q.shape[-1] ** -0.5
    query, key, value = q.float(), k.float(), v.float()
    decay = torch.exp(g_gamma)[:, None, None]

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = torch.empty_like(initial_state)
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = initial_state[n]
        for t in range(first, end):
            state = decay * state + key[t, :, :, None] * value[t, :, None, :]
            output[t] = scale * (query[t, :, :, None] * state).sum(dim=1)
        final_state[n] = state
    return output.to(v.dtype), final_state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
