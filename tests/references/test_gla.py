# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 749c0f73fc9837dee6753425812e4930
"""Tests of definitions/gla. conftest.py says how they run."""

import conftest


# definition: "gla_chunk_varlen_h2_d128"
class TestGlaChunkVarlenH2D128(conftest.DefinitionTests):
    OP_TYPE = "gla"
    NAME = "gla_chunk_varlen_h2_d128"
    FAMILY = "gla"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
        cu_seqlens="cu_seqlens",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 2
    HEAD_SIZE = 128
    AXES = conftest.constants(
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_heads=NUM_HEADS,
        head_size=HEAD_SIZE,
    )
    SIZES = (
        conftest.size("small", total_seq_len=5, num_seqs=1, len_cu_seqlens=2),
        conftest.size("small", total_seq_len=130, num_seqs=2, len_cu_seqlens=3),
        conftest.size("medium", total_seq_len=1281, num_seqs=65, len_cu_seqlens=66),
        conftest.size("medium", total_seq_len=256, num_seqs=64, len_cu_seqlens=65),
        conftest.size("large", total_seq_len=16384, num_seqs=8, len_cu_seqlens=9),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    OMITTED = ("initial_state",)
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
    RULES = conftest.rules(
        [  # output
            (0.00014095465556387347, 0.01, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch

CHUNK = 64


@torch.no_grad()
def run(q, k, v, g, cu_seqlens, initial_state=None):
    # [heads, tokens, dim]
    query, key, value, gate = (x.float().transpose(0, 1) for x in (q, k, v, g))
    query = query * q.shape[-1] ** -0.5

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = value.new_zeros(len(offsets) - 1, q.shape[1], q.shape[2], v.shape[2])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            total = gate[:, part].cumsum(dim=1)
            # What token i still has of token j; those after it are masked below.
            left = torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))
            scores = torch.einsum("hik,hijk,hjk->hij", query[:, part], left, key[:, part]).tril()
            output[:, part] = scores @ value[:, part] + (query[:, part] * torch.exp(total)) @ state
            last = total[:, -1:]
            added = (torch.exp(last - total) * key[:, part]).transpose(1, 2) @ value[:, part]
            state = torch.exp(last).transpose(1, 2) * state + added
        final_state[n] = state
    return output.transpose(0, 1).to(v.dtype), final_state
"""


# definition: "gla_recurrent_h4_k64_v128"
class TestGlaRecurrentH4K64V128(conftest.DefinitionTests):
    OP_TYPE = "gla"
    NAME = "gla_recurrent_h4_k64_v128"
    FAMILY = "gla"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
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
        batch_size=None,
        seq_len=None,
        num_heads=NUM_HEADS,
        key_size=KEY_SIZE,
        value_size=VALUE_SIZE,
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
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, seq_len=0),
        conftest.edge("one_token", batch_size=1, seq_len=1),
        conftest.edge("no_tokens", batch_size=2, seq_len=0),
        conftest.edge("forgets_all", batch_size=2, seq_len=9),
    )
    SCALARS = conftest.constants(
        scale=[
            0.15625,
            0.15625,
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
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(q, k, v, g, scale, initial_state):
    scale = scale or q.shape[-1] ** -0.5
    query, key, value = q.float(), k.float(), v.float()
    decay = torch.exp(g)

    state = initial_state
    output = torch.empty_like(value)
    for t in range(q.shape[1]):
        state = decay[:, t, :, :, None] * state
        state = state + key[:, t, :, :, None] * value[:, t, :, None, :]
        output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)
    return output.to(v.dtype), state.clone()
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
