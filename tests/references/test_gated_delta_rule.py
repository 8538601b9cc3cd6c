# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 1cda5f2f11deb97198639497d8787868
"""Tests of definitions/gated_delta_rule. conftest.py says how they run."""

import conftest


# definition: "gated_delta_rule_chunk_varlen_gate_h2_hv4_k64_v128"
class TestGatedDeltaRuleChunkVarlenGateH2Hv4K64V128(conftest.DefinitionTests):
    OP_TYPE = "gated_delta_rule"
    NAME = "gated_delta_rule_chunk_varlen_gate_h2_hv4_k64_v128"
    FAMILY = "gated_delta_rule"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
        a_log="A_log",
        dt_bias="dt_bias",
        beta="beta",
        cu_seqlens="cu_seqlens",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 2
    NUM_V_HEADS = 4
    KEY_SIZE = 64
    VALUE_SIZE = 128
    AXES = conftest.constants(
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_heads=NUM_HEADS,
        num_v_heads=NUM_V_HEADS,
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
import torch.nn.functional as F

CHUNK = 64


@torch.no_grad()
def run(q, k, v, g, A_log, dt_bias, beta, cu_seqlens, initial_state=None):
    sharing = v.shape[1] // q.shape[1]
    # [heads, tokens, dim]
    query = q.float().transpose(0, 1).repeat_interleave(sharing, dim=0) * q.shape[-1] ** -0.5
    key = k.float().transpose(0, 1).repeat_interleave(sharing, dim=0)
    value = v.float().transpose(0, 1)
    strength = beta.transpose(0, 1)[..., None]
    gate = (-torch.exp(A_log) * F.softplus(g.float() + dt_bias)).transpose(0, 1)

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = value.new_zeros(len(offsets) - 1, v.shape[1], q.shape[2], v.shape[2])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            keys, weak = key[:, part], strength[:, part]
            total = gate[:, part].cumsum(dim=1)
            left = torch.exp((total[:, :, None] - total[:, None, :]).clamp(max=0))
            since = torch.exp(total)[..., None]
            # learnt_i = beta_i (v_i - k_i state_i), state_i as the tokens before i left it and i found it
            among = (weak * (keys @ keys.transpose(1, 2)) * left).tril(diagonal=-1)
            ones = torch.eye(among.shape[1], device=q.device)
            surprise = weak * (value[:, part] - since * (keys @ state))
            learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)
            scores = (query[:, part] @ keys.transpose(1, 2) * left).tril()
            output[:, part] = since * (query[:, part] @ state) + scores @ learnt
            kept = torch.exp(total[:, -1:] - total)[..., None] * keys
            state = since[:, -1:] * state + kept.transpose(1, 2) @ learnt
        final_state[n] = state
    return output.transpose(0, 1).to(v.dtype), final_state
"""


# definition: "gated_delta_rule_recurrent_h2_hv4_d64"
class TestGatedDeltaRuleRecurrentH2Hv4D64(conftest.DefinitionTests):
    OP_TYPE = "gated_delta_rule"
    NAME = "gated_delta_rule_recurrent_h2_hv4_d64"
    FAMILY = "gated_delta_rule"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
        beta="beta",
        scale="scale",
        state="initial_state",
        l2norm="use_qk_l2norm_in_kernel",
        sigmoid="use_beta_sigmoid_in_kernel",
        doubled="allow_neg_eigval",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_HEADS = 2
    NUM_V_HEADS = 4
    HEAD_SIZE = 64
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        num_heads=NUM_HEADS,
        num_v_heads=NUM_V_HEADS,
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
        conftest.edge("forgets_all", batch_size=2, seq_len=9),
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
        use_qk_l2norm_in_kernel=[
            True,
            False,
            False,
            True,
            True,
            False,
            False,
        ],
        use_beta_sigmoid_in_kernel=[False],
        allow_neg_eigval=[
            True,
            False,
            False,
            True,
            True,
            False,
            False,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (3.814697265625e-05, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (3.814697265625e-05, 0.01, 1.0),
            (9.1552734375e-06, 0.01, 1.0),
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
def run(
    q, k, v, g, beta, scale, initial_state, use_qk_l2norm_in_kernel, use_beta_sigmoid_in_kernel, allow_neg_eigval
):
    scale = scale or q.shape[-1] ** -0.5
    query, key = q.float(), k.float()
    if use_qk_l2norm_in_kernel:
        query = query * torch.rsqrt(query.square().sum(dim=-1, keepdim=True) + 1e-6)
        key = key * torch.rsqrt(key.square().sum(dim=-1, keepdim=True) + 1e-6)
    sharing = v.shape[2] // q.shape[2]
    query = query.repeat_interleave(sharing, dim=2)
    key = key.repeat_interleave(sharing, dim=2)
    strength = beta.float()
    if use_beta_sigmoid_in_kernel:
        strength = torch.sigmoid(strength)
    if allow_neg_eigval:
        strength = 2 * strength
    decay = torch.exp(g)

    state = initial_state.clone()
    output = torch.empty_like(v)
    for t in range(q.shape[1]):
        state = decay[:, t, :, None, None] * state
        held = (key[:, t, :, :, None] * state).sum(dim=2)
        learnt = strength[:, t, :, None] * (v[:, t].float() - held)
        state = state + key[:, t, :, :, None] * learnt[:, :, None, :]
        output[:, t] = (scale * (query[:, t, :, :, None] * state).sum(dim=2)).to(v.dtype)
    return output, state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
