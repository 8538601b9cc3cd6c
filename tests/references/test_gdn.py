# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 87f664ae7b71296032c56e81bc8f2e07
"""Tests of definitions/gdn. conftest.py says how they run."""

import conftest


# definition: "gdn_decode_qk8_v16_d128_k_last"
class TestGdnDecodeQk8V16D128KLast(conftest.DefinitionTests):
    OP_TYPE = "gdn"
    NAME = "gdn_decode_qk8_v16_d128_k_last"
    FAMILY = "gdn"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        state="state",
        a_log="A_log",
        a="a",
        dt_bias="dt_bias",
        b="b",
        scale="scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="new_state",
    )
    SEQ_LEN = 1
    NUM_Q_HEADS = 8
    NUM_K_HEADS = 8
    NUM_V_HEADS = 16
    HEAD_SIZE = 128
    AXES = conftest.constants(
        batch_size=None,
        seq_len=SEQ_LEN,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        num_v_heads=NUM_V_HEADS,
        head_size=HEAD_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=3),
        conftest.size("medium", batch_size=129),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=512),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    OMITTED = ("state",)
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (conftest.edge("no_sequences", batch_size=0),)
    SCALARS = conftest.constants(
        scale=[
            0.11048543456039804,
            0.11048543456039804,
            0.02651650429449553,
            0.02651650429449553,
            0.02651650429449553,
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
        [  # new_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, state, A_log, a, dt_bias, b, scale):
    sharing = v.shape[2] // q.shape[2]
    scale = scale or 1 / math.sqrt(q.shape[3])

    # One token: its axis is dropped here and put back at the end. Neighbouring value heads share a query and a key.
    query = q[:, 0].float().repeat_interleave(sharing, dim=1)
    key = k[:, 0].float().repeat_interleave(sharing, dim=1)
    value = v[:, 0].float()
    decay = torch.exp(-torch.exp(A_log) * F.softplus(a[:, 0].float() + dt_bias))
    beta = torch.sigmoid(b[:, 0].float())

    held = query.new_zeros(len(q), v.shape[2], v.shape[3], q.shape[3])
    if state is not None:
        held = decay[..., None, None] * state
    recalled = torch.einsum("bhvk,bhk->bhv", held, key)
    correction = beta[..., None] * (value - recalled)
    new_state = held + correction[..., :, None] * key[..., None, :]
    output = scale * torch.einsum("bhvk,bhk->bhv", new_state, query)
    return output.to(v.dtype).unsqueeze(1), new_state
"""


# definition: "gdn_mtp_qk2_v4_d128_k_last"
class TestGdnMtpQk2V4D128KLast(conftest.DefinitionTests):
    OP_TYPE = "gdn"
    NAME = "gdn_mtp_qk2_v4_d128_k_last"
    FAMILY = "gdn"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        state="initial_state",
        indices="initial_state_indices",
        a_log="A_log",
        a="a",
        dt_bias="dt_bias",
        b="b",
        scale="scale",
        buffer="intermediate_states_buffer",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    NUM_Q_HEADS = 2
    NUM_K_HEADS = 2
    NUM_V_HEADS = 4
    HEAD_SIZE = 128
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        pool_size=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        num_v_heads=NUM_V_HEADS,
        head_size=HEAD_SIZE,
    )
    UPDATES_STATE = 0.0  # description
    CONSTANTS = conftest.constants(
        updates_state=UPDATES_STATE,
    )
    LEAVES = conftest.constants(
        intermediate_states_buffer=conftest.WRITTEN,
    )
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=2, pool_size=3),
        conftest.size("small", batch_size=2, seq_len=2, pool_size=5),
        conftest.size("small", batch_size=3, seq_len=5, pool_size=3),
        conftest.size("medium", batch_size=1, seq_len=17, pool_size=3),
        conftest.size("medium", batch_size=2, seq_len=16, pool_size=5),
        conftest.size("medium", batch_size=129, seq_len=2, pool_size=136),
        conftest.size("medium", batch_size=128, seq_len=2, pool_size=135),
        conftest.size("large", batch_size=64, seq_len=8, pool_size=96),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2, 1), (2,), (1,), (2,), (1, 2), (1, 2, 1))
    OMITTED = ("intermediate_states_buffer",)
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (conftest.edge("no_sequences", batch_size=0, seq_len=2, pool_size=3),)
    SCALARS = conftest.constants(
        scale=[
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.02651650429449553,
            0.02651650429449553,
            0.02651650429449553,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
        ],
        [  # final_state
            (0.0, 0.0, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b, scale, intermediate_states_buffer=None):
    sharing = v.shape[2] // q.shape[2]
    scale = scale or 1 / math.sqrt(q.shape[3])
    query = q.float().repeat_interleave(sharing, dim=2)
    key = k.float().repeat_interleave(sharing, dim=2)
    decay = torch.exp(-torch.exp(A_log) * F.softplus(a.float() + dt_bias))
    beta = torch.sigmoid(b.float())

    slots = initial_state_indices.long()
    held = initial_state[slots]
    output = torch.empty_like(v)
    for t in range(q.shape[1]):
        held = decay[:, t, :, None, None] * held
        recalled = torch.einsum("bhvk,bhk->bhv", held, key[:, t])
        correction = beta[:, t, :, None] * (v[:, t].float() - recalled)
        held = held + correction[..., :, None] * key[:, t, :, None, :]
        output[:, t] = (scale * torch.einsum("bhvk,bhk->bhv", held, query[:, t])).to(v.dtype)
        if intermediate_states_buffer is not None:
            intermediate_states_buffer[slots, t] = held

    # The tokens are drafts: which of them stay is decided later.
    return output, initial_state.clone()
"""


# definition: "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last"
class TestGdnMtpQkL2normQk2V4D128KLast(conftest.DefinitionTests):
    OP_TYPE = "gdn"
    NAME = "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last"
    FAMILY = "gdn"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        state="initial_state",
        indices="initial_state_indices",
        a_log="A_log",
        a="a",
        dt_bias="dt_bias",
        b="b",
        scale="scale",
        l2norm="use_qk_l2norm",
        frozen="disable_state_update",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="final_state",
    )
    MODES = ("l2norm",)
    NUM_Q_HEADS = 2
    NUM_K_HEADS = 2
    NUM_V_HEADS = 4
    HEAD_SIZE = 128
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        pool_size=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        num_v_heads=NUM_V_HEADS,
        head_size=HEAD_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=2, pool_size=3),
        conftest.size("small", batch_size=2, seq_len=1, pool_size=5),
        conftest.size("small", batch_size=3, seq_len=5, pool_size=3),
        conftest.size("medium", batch_size=1, seq_len=17, pool_size=3),
        conftest.size("medium", batch_size=2, seq_len=16, pool_size=5),
        conftest.size("medium", batch_size=257, seq_len=2, pool_size=264),
        conftest.size("medium", batch_size=256, seq_len=2, pool_size=264),
        conftest.size("large", batch_size=64, seq_len=8, pool_size=96),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2, 1), (2,), (1,), (2,), (1, 2), (1, 2, 1))
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (conftest.edge("no_sequences", batch_size=0, seq_len=2, pool_size=3),)
    SCALARS = conftest.constants(
        scale=[
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.11048543456039804,
            0.02651650429449553,
            0.02651650429449553,
            0.02651650429449553,
        ],
        use_qk_l2norm=[
            True,
            False,
            True,
            True,
            False,
            True,
            False,
            False,
        ],
        disable_state_update=[
            False,
            False,
            True,
            False,
            False,
            False,
            False,
            False,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (2.6973983046972178e-05, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (2.6973983046972178e-05, 0.01, 1.0),
            (2.6973983046972178e-05, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
            (6.473755931273322e-06, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
            (4.228639666916204e-05, 0.01, 1.0),
        ],
        [  # final_state
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (0.0, 0.0, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b, scale, use_qk_l2norm, disable_state_update):
    q, k = q.float(), k.float()
    if use_qk_l2norm:
        q = F.normalize(q, dim=-1)
        k = F.normalize(k, dim=-1)
    heads = torch.arange(v.shape[2], device=v.device) // (v.shape[2] // q.shape[2])
    scale = scale or 1 / math.sqrt(q.shape[3])
    decay = torch.exp(-torch.exp(A_log) * F.softplus(a.float() + dt_bias))
    beta = torch.sigmoid(b.float())

    output = torch.zeros_like(v)
    final_state = initial_state.clone()
    for i, slot in enumerate(initial_state_indices.tolist()):
        held = initial_state[slot]
        for t in range(q.shape[1]):
            query, key = q[i, t, heads], k[i, t, heads]
            held = decay[i, t, :, None, None] * held
            recalled = (held @ key.unsqueeze(-1)).squeeze(-1)
            correction = beta[i, t, :, None] * (v[i, t].float() - recalled)
            held = held + correction.unsqueeze(-1) * key.unsqueeze(-2)
            output[i, t] = (scale * (held @ query.unsqueeze(-1)).squeeze(-1)).to(v.dtype)
        if not disable_state_update:
            final_state[slot] = held
    return output, final_state
"""


# definition: "gdn_prefill_qk2_v4_d128_k_last"
class TestGdnPrefillQk2V4D128KLast(conftest.DefinitionTests):
    OP_TYPE = "gdn"
    NAME = "gdn_prefill_qk2_v4_d128_k_last"
    FAMILY = "gdn"
    ROLES = conftest.constants(
        q="q",
        k="k",
        v="v",
        state="state",
        a_log="A_log",
        a="a",
        dt_bias="dt_bias",
        b="b",
        cu_seqlens="cu_seqlens",
        scale="scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="new_state",
    )
    NUM_Q_HEADS = 2
    NUM_K_HEADS = 2
    NUM_V_HEADS = 4
    HEAD_SIZE = 128
    AXES = conftest.constants(
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_q_heads=NUM_Q_HEADS,
        num_k_heads=NUM_K_HEADS,
        num_v_heads=NUM_V_HEADS,
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
    OMITTED = ("state",)
    DEFAULT_NUMBERS = conftest.constants(
        scale=0.0,
    )
    EDGES = (
        conftest.edge("no_sequences", total_seq_len=0, num_seqs=0, len_cu_seqlens=1),
        conftest.edge("empty_sequence", total_seq_len=5, num_seqs=3, len_cu_seqlens=4),
    )
    SCALARS = conftest.constants(
        scale=[
            0.11048543456039804,
            0.11048543456039804,
            0.02651650429449553,
            0.02651650429449553,
            0.02651650429449553,
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
        [  # new_state
            (3.0517578125e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, state, A_log, a, dt_bias, b, cu_seqlens, scale):
    sharing = v.shape[1] // q.shape[1]
    scale = scale or 1 / math.sqrt(q.shape[2])
    query = q.float().repeat_interleave(sharing, dim=1)
    key = k.float().repeat_interleave(sharing, dim=1)
    decay = torch.exp(-torch.exp(A_log) * F.softplus(a.float() + dt_bias))
    beta = torch.sigmoid(b.float())

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(v)
    new_state = query.new_zeros(len(offsets) - 1, v.shape[1], v.shape[2], q.shape[2])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        held = torch.zeros_like(new_state[n]) if state is None else state[n]
        for t in range(first, end):
            held = decay[t, :, None, None] * held
            recalled = (held * key[t, :, None, :]).sum(dim=-1)
            correction = beta[t, :, None] * (v[t].float() - recalled)
            held = held + correction[:, :, None] * key[t, :, None, :]
            output[t] = (scale * (held * query[t, :, None, :]).sum(dim=-1)).to(v.dtype)
        new_state[n] = held
    return output, new_state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
