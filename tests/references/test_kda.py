# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 731b90825f9f2193acea2311bf6825f3
"""Tests of definitions/kda. conftest.py says how they run."""

import conftest


# definition: "kda_chunk_varlen_gate_beta_sigmoid_h4_d64"
class TestKdaChunkVarlenGateBetaSigmoidH4D64(conftest.DefinitionTests):
    OP_TYPE = "kda"
    NAME = "kda_chunk_varlen_gate_beta_sigmoid_h4_d64"
    FAMILY = "kda"
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
    MODES = ("sigmoid",)
    ONE = 1
    NUM_HEADS = 4
    HEAD_SIZE = 64
    NUM_GATES = 256
    AXES = conftest.constants(
        one=ONE,
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_heads=NUM_HEADS,
        head_size=HEAD_SIZE,
        num_gates=NUM_GATES,
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
    # [heads, tokens, dim]
    query, key, value = (x[0].float().transpose(0, 1) for x in (q, k, v))
    query = query * q.shape[-1] ** -0.5
    strength = torch.sigmoid(beta[0].float()).transpose(0, 1)[..., None]
    gate = F.softplus(g[0].float() + dt_bias.view(g.shape[2:])).transpose(0, 1)
    gate = -torch.exp(A_log)[:, None, None] * gate

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = value.new_zeros(len(offsets) - 1, q.shape[2], q.shape[3], v.shape[3])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            keys, weak = key[:, part], strength[:, part]
            total = gate[:, part].cumsum(dim=1)
            left = torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))
            since = torch.exp(total)
            # learnt_i = beta_i (v_i - k_i state_i), state_i as the tokens before i left it and i found it
            among = (weak * torch.einsum("hik,hijk,hjk->hij", keys, left, keys)).tril(diagonal=-1)
            ones = torch.eye(among.shape[1], device=q.device)
            surprise = weak * (value[:, part] - (since * keys) @ state)
            learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)
            scores = torch.einsum("hik,hijk,hjk->hij", query[:, part], left, keys).tril()
            output[:, part] = (since * query[:, part]) @ state + scores @ learnt
            kept = torch.exp(total[:, -1:] - total) * keys
            state = since[:, -1, :, None] * state + kept.transpose(1, 2) @ learnt
        final_state[n] = state
    return output.transpose(0, 1)[None].to(v.dtype), final_state
"""


# definition: "kda_recurrent_lower_bound_h2_k64_v32"
class TestKdaRecurrentLowerBoundH2K64V32(conftest.DefinitionTests):
    OP_TYPE = "kda"
    NAME = "kda_recurrent_lower_bound_h2_k64_v32"
    FAMILY = "kda"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
        a_log="A_log",
        dt_bias="dt_bias",
        beta="beta",
        lower_bound="lower_bound",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    NUM_HEADS = 2
    KEY_SIZE = 64
    VALUE_SIZE = 32
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
        conftest.size("medium", batch_size=513, seq_len=1),
        conftest.size("medium", batch_size=256, seq_len=1),
        conftest.size("large", batch_size=4, seq_len=2048),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1,), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, seq_len=0),
        conftest.edge("one_token", batch_size=1, seq_len=1),
        conftest.edge("no_tokens", batch_size=2, seq_len=0),
    )
    SCALARS = conftest.constants(
        lower_bound=[-5.0],
    )
    RULES = conftest.rules(
        [  # output
            (3.0517578125e-05, 0.01, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(q, k, v, g, A_log, dt_bias, beta, lower_bound):
    query, key, value = q.float() * q.shape[-1] ** -0.5, k.float(), v.float()
    gate = lower_bound * torch.sigmoid(torch.exp(A_log)[:, None] * (g.float() + dt_bias))
    decay, strength = torch.exp(gate)[..., None], beta.float()[..., None]

    state = value.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    output = torch.empty_like(value)
    for t in range(q.shape[1]):
        state = decay[:, t] * state
        learnt = strength[:, t] * (value[:, t] - (key[:, t, :, None] @ state)[:, :, 0])
        state = state + key[:, t, :, :, None] * learnt[:, :, None]
        output[:, t] = (query[:, t, :, None] @ state)[:, :, 0]
    return output.to(v.dtype)
"""


# definition: "kda_recurrent_qk_l2norm_v_first_h2_hv4_d64"
class TestKdaRecurrentQkL2normVFirstH2Hv4D64(conftest.DefinitionTests):
    OP_TYPE = "kda"
    NAME = "kda_recurrent_qk_l2norm_v_first_h2_hv4_d64"
    FAMILY = "kda"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        gate="g",
        beta="beta",
        scale="scale",
        state="initial_state",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    MODES = ("v_first", "l2norm")
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


def normalised(x):
    x = x.float()
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


@torch.no_grad()
def run(q, k, v, g, beta, scale, initial_state):
    scale = scale or q.shape[-1] ** -0.5
    heads = torch.arange(v.shape[2], device=v.device) // (v.shape[2] // q.shape[2])
    query, key, value = normalised(q)[:, :, heads], normalised(k)[:, :, heads], v.float()
    decay = torch.exp(g)

    state = initial_state.clone()
    output = torch.empty_like(value)
    for t in range(q.shape[1]):
        state = state * decay[:, t, :, None, :]
        held = torch.einsum("bhvk,bhk->bhv", state, key[:, t])
        learnt = beta[:, t, :, None] * (value[:, t] - held)
        state = state + learnt[..., :, None] * key[:, t, :, None, :]
        output[:, t] = scale * torch.einsum("bhvk,bhk->bhv", state, query[:, t])
    return output.to(v.dtype), state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
