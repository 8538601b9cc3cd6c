# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 106d4bf1bd8306023e4520225d0ad239
"""Tests of definitions/mamba_ssu. conftest.py says how they run."""

import conftest


# definition: "mamba_ssu_decode_gated_h16_d64_s128_ng4"
class TestMambaSsuDecodeGatedH16D64S128Ng4(conftest.DefinitionTests):
    OP_TYPE = "mamba_ssu"
    NAME = "mamba_ssu_decode_gated_h16_d64_s128_ng4"
    FAMILY = "mamba_ssu"
    ROLES = conftest.constants(
        state="state",
        x="x",
        dt="dt",
        a="A",
        b="B",
        c="C",
        d="D",
        z="z",
        dt_bias="dt_bias",
        indices="state_batch_indices",
        softplus="dt_softplus",
        pad="pad_slot_id",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="new_state",
    )
    NHEADS = 16
    HEAD_DIM = 64
    DSTATE = 128
    NGROUPS = 4
    AXES = conftest.constants(
        batch_size=None,
        state_cache_size=None,
        nheads=NHEADS,
        head_dim=HEAD_DIM,
        dstate=DSTATE,
        ngroups=NGROUPS,
    )
    LEAVES = conftest.constants(
        state=conftest.written("new_state"),
    )
    SIZES = (
        conftest.size("small", batch_size=1, state_cache_size=3),
        conftest.size("small", batch_size=5, state_cache_size=8),
        conftest.size("medium", batch_size=257, state_cache_size=129),
        conftest.size("medium", batch_size=256, state_cache_size=128),
        conftest.size("large", batch_size=512, state_cache_size=384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    OMITTED = ("z",)
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, state_cache_size=3),
        conftest.edge("all_padding", batch_size=3, state_cache_size=3),
        conftest.edge("many_sequences", batch_size=129, state_cache_size=137),
    )
    SCALARS = conftest.constants(
        dt_softplus=[
            True,
            False,
            True,
            True,
            True,
        ],
        pad_slot_id=[
            -1,
            -9,
            -1,
            -1,
            -1,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.0027621358640099515, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(state, x, dt, A, B, C, D, z, dt_bias, state_batch_indices, dt_softplus, pad_slot_id):
    heads, groups = x.shape[1], B.shape[1]
    output = torch.zeros_like(x)
    for i, slot in enumerate(state_batch_indices.tolist()):
        if slot == pad_slot_id:
            continue
        step = dt[i].float() + dt_bias
        if dt_softplus:
            step = F.softplus(step)
        token = x[i].float()
        weight_in, weight_out = B[i].float(), C[i].float()
        for h in range(heads):
            g = h // (heads // groups)
            held = state[slot, h] * torch.exp(A[h] * step[h])
            held = held + step[h] * torch.outer(token[h], weight_in[g])
            y = held @ weight_out[g] + D[h] * token[h]
            state[slot, h] = held
            if z is not None:
                y = y * F.silu(z[i, h].float())
            output[i, h] = y.to(x.dtype)
    return output, state
"""


# definition: "mamba_ssu_decode_h32_d64_s128_ng2"
class TestMambaSsuDecodeH32D64S128Ng2(conftest.DefinitionTests):
    OP_TYPE = "mamba_ssu"
    NAME = "mamba_ssu_decode_h32_d64_s128_ng2"
    FAMILY = "mamba_ssu"
    ROLES = conftest.constants(
        state="state",
        x="x",
        dt="dt",
        a="A",
        b="B",
        c="C",
        d="D",
        dt_bias="dt_bias",
        indices="state_batch_indices",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
        new_state="new_state",
    )
    NHEADS = 32
    HEAD_DIM = 64
    DSTATE = 128
    NGROUPS = 2
    AXES = conftest.constants(
        batch_size=None,
        state_cache_size=None,
        nheads=NHEADS,
        head_dim=HEAD_DIM,
        dstate=DSTATE,
        ngroups=NGROUPS,
    )
    SIZES = (
        conftest.size("small", batch_size=1, state_cache_size=3),
        conftest.size("small", batch_size=5, state_cache_size=8),
        conftest.size("medium", batch_size=129, state_cache_size=129),
        conftest.size("medium", batch_size=128, state_cache_size=128),
        conftest.size("large", batch_size=384, state_cache_size=384),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_sequences", batch_size=0, state_cache_size=3),
        conftest.edge("all_padding", batch_size=3, state_cache_size=3),
        conftest.edge("many_sequences", batch_size=129, state_cache_size=137),
    )
    RULES = conftest.rules(
        [  # output
            (0.0027621358640099515, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.01, 1.0),
        ],
    )
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(state, x, dt, A, B, C, D, dt_bias, state_batch_indices):
    sharing = x.shape[1] // B.shape[1]
    slots = state_batch_indices.long()
    active = slots >= 0
    step = F.softplus(dt.float() + dt_bias.float())
    weight_in = B.float().repeat_interleave(sharing, dim=1)
    weight_out = C.float().repeat_interleave(sharing, dim=1)

    held = state[slots.clamp(min=0)].float() * torch.exp(A * step[..., None])
    held = held + (step * x.float())[..., None] * weight_in[:, :, None, :]
    y = (held * weight_out[:, :, None, :]).sum(dim=-1) + D.float() * x.float()

    new_state = state.clone()
    new_state[slots[active]] = held[active].to(state.dtype)
    return torch.where(active[:, None, None], y, 0).to(x.dtype), new_state
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
