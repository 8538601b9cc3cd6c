# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 88cbac8a71adf2bd2c000c09c9a13e26
"""Tests of definitions/delta_rule. conftest.py says how they run."""

import conftest


# definition: "delta_rule_chunk_varlen_h2_k128_v64"
class TestDeltaRuleChunkVarlenH2K128V64(conftest.DefinitionTests):
    OP_TYPE = "delta_rule"
    NAME = "delta_rule_chunk_varlen_h2_k128_v64"
    FAMILY = "delta_rule"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        beta="beta",
        cu_seqlens="cu_seqlens",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 2
    KEY_SIZE = 128
    VALUE_SIZE = 64
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
def run(q, k, v, beta, cu_seqlens, initial_state=None):
    # [heads, tokens, dim]
    query, key, value = (x.float().transpose(0, 1) for x in (q, k, v))
    query = query * q.shape[-1] ** -0.5
    strength = beta.float().transpose(0, 1)[..., None]

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = value.new_zeros(len(offsets) - 1, q.shape[1], q.shape[2], v.shape[2])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            keys, weak = key[:, part], strength[:, part]
            # learnt_i = beta_i (v_i - k_i state - sum over j < i of (k_i k_j) learnt_j)
            among = (weak * (keys @ keys.transpose(1, 2))).tril(diagonal=-1)
            ones = torch.eye(among.shape[1], device=q.device)
            surprise = weak * (value[:, part] - keys @ state)
            learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)
            scores = (query[:, part] @ keys.transpose(1, 2)).tril()
            output[:, part] = query[:, part] @ state + scores @ learnt
            state = state + keys.transpose(1, 2) @ learnt
        final_state[n] = state
    return output.transpose(0, 1).to(v.dtype), final_state
"""


# definition: "delta_rule_recurrent_qk_l2norm_h4_d64"
class TestDeltaRuleRecurrentQkL2normH4D64(conftest.DefinitionTests):
    OP_TYPE = "delta_rule"
    NAME = "delta_rule_recurrent_qk_l2norm_h4_d64"
    FAMILY = "delta_rule"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        beta="beta",
        scale="scale",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    MODES = ("l2norm",)
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
        conftest.edge("rows_of_zeros", batch_size=2, seq_len=7),
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
            (3.814697265625e-05, 0.01, 1.0),
            (3.814697265625e-05, 0.01, 1.0),
            (3.814697265625e-05, 0.01, 1.0),
            (3.814697265625e-05, 0.01, 1.0),
            (9.1552734375e-06, 0.01, 1.0),
            (9.1552734375e-06, 0.01, 1.0),
            (9.1552734375e-06, 0.01, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, beta, scale, initial_state):
    scale = scale or q.shape[-1] ** -0.5
    query = F.normalize(q.float(), dim=-1)
    key = F.normalize(k.float(), dim=-1)
    value, beta = v.float(), beta.float()

    state = initial_state.clone()
    output = torch.empty_like(value)
    for t in range(q.shape[1]):
        held = torch.einsum("bhk,bhkv->bhv", key[:, t], state)
        learnt = beta[:, t, :, None] * (value[:, t] - held)
        state = state + key[:, t, :, :, None] * learnt[:, :, None, :]
        output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)
    return output.to(v.dtype), state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
