# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: ec612b65cf2acf36418155dd64b60e0e
"""Tests of definitions/gdn. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def gdn_part(name, spec):
    """What an input is, by its rank, and where several have the same by its name."""
    rank = 0 if spec["shape"] is None else len(spec["shape"])
    if rank == 0:
        words = ("l2norm", "disable", "scale")
    elif rank == 1 and "int" in spec["dtype"]:
        words = ("indices", "seqlens", "indptr", "offsets")
    else:
        words = ("log", "bias") if rank == 1 else ("state",)
    part = next((word for word in words if word in name.lower()), None)
    if part is None:
        return name if name in ("a", "b") else name[0].lower()
    if part in ("indptr", "offsets"):
        return "seqlens"
    return "buffer" if part == "state" and rank == 5 else part


def gdn_parts(definition, inputs):
    """Inputs by part, and "l2norm" and "scale" whether they are inputs or not. To libraries the heads of q are those of k:
    where each has its own, there is one of both for each of v."""
    specs = definition["inputs"]
    parts = {gdn_part(name, spec): inputs[name] for name, spec in specs.items()}
    words = [definition["name"], *definition.get("tags", [])]
    if parts["q"].numel() == 0:
        raise NotImplementedError("it takes no empty batch")
    if parts["q"].shape != parts["k"].shape:
        heads = parts["v"].shape[-2]
        for name in "qk":
            sharing = heads // parts[name].shape[-2]
            parts[name] = parts[name].repeat_interleave(sharing, dim=-2)
    parts.setdefault("l2norm", any("l2norm" in word for word in words))
    parts["scale"] = parts.get("scale") or parts["q"].shape[-1] ** -0.5
    return parts


def gdn_offsets(total, count):
    """Ragged sequences of at least one token each."""
    weights = torch.tensor([65, 1, 64, 9, 63, 128]).repeat(count // 6 + 1)[:count]
    shares = weights.cumsum(0) * (total - count) // weights.sum().clamp(min=1)
    return torch.cat([torch.zeros(1), shares + torch.arange(1, count + 1)])


def gdn_inputs(definition, axes, device="cpu", seed=0):
    """Keys of norm 1 (where the reference normalises them: of 1, 2 or 4), so that states contract; every other query
    reads what was just written; states in every slot, and something in the buffer, so that what is not written there
    shows; decays from hardly any to nearly all, by head and by token."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    parts = {gdn_part(name, spec): name for name, spec in specs.items()}
    inputs, l2norm = {}, "l2norm" in parts or "l2norm" in definition["name"]
    for name, spec in specs.items():
        part = gdn_part(name, spec)
        if spec["shape"] is None:
            inputs[name] = {"scale": 0.09, "l2norm": True, "disable": False}[part]
            continue
        shape = conftest.shape_of(spec, sizes)
        if part == "seqlens":
            total = conftest.shape_of(specs[parts["q"]], sizes)[0]
            values = gdn_offsets(total, shape[0] - 1)
        elif part == "indices":
            slots = conftest.shape_of(specs[parts["state"]], sizes)[0]
            if slots < shape[0]:
                raise conftest.Unavailable(f"{slots} slots hold no {shape[0]} states")
            values = torch.randperm(slots, generator=generator)[: shape[0]]
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator)
        if part == "k":
            values = torch.nn.functional.normalize(values, dim=-1)
        elif part in ("a", "bias"):
            values = values * 2
        elif part == "b":
            values = values * 4
        elif part == "log":
            heads = torch.arange(len(values)) % 4
            values = values / 2 + torch.tensor([-3.0, -1.0, 1.0, -5.0])[heads]
        elif part == "state":
            values = values / 2
        if part == "a":
            values.view(-1)[3::16] = -24.0
            values.view(-1)[11::16] = 16.0
        inputs[name] = values
    q, k = inputs[parts["q"]], inputs[parts["k"]]
    if q.shape == k.shape:
        q.view(-1, q.shape[-1])[1::2] = k.view(-1, k.shape[-1])[1::2]
    if l2norm:
        for values in (q, k):
            rows = values.view(-1, values.shape[-1])
            rows *= 2.0 ** (torch.arange(len(rows)) % 3)[:, None]
    for name, spec in specs.items():
        if spec["shape"] is not None:
            inputs[name] = inputs[name].to(conftest.dtype_of(spec)).to(device)
    return inputs


def gdn_edges(definition, axes):
    """No sequence, and one; where sequences are packed: of one token."""
    specs = definition["inputs"].items()
    shapes = {gdn_part(name, spec): spec["shape"] for name, spec in specs}
    if "seqlens" not in shapes:
        return [{**axes, shapes["q"][0]: count} for count in (0, 1)]
    found = []
    for count in (0, 1):
        edge = {shapes["q"][0]: count, shapes["seqlens"][0]: count + 1}
        edge[shapes["state"][0] if "state" in shapes else "num_seqs"] = count
        found.append({**axes, **edge})
    return found


def gdn_tolerance(definition, axes, index):
    """Kernels that take tokens by chunks round states and products to bfloat16 on the way."""
    states = "state" in list(definition["outputs"])[index].lower()
    return (4e-3, 5e-3 if states else 1e-2, 1.0)


def gdn_gates(parts):
    """Log of the decay, and beta: float32."""
    steps = torch.nn.functional.softplus(parts["a"].float() + parts["bias"].float())
    return -parts["log"].float().exp() * steps, parts["b"].float().sigmoid()


def gdn_updates(test, inputs):
    """Does the pool that comes back hold the new states?"""
    for name, value in inputs.items():
        if "disable_state_update" in name:
            return not value
    if "updates_state" not in test.CONSTANTS:  # of drafts alone it is asked
        return True
    return bool(conftest.need_constant(test, "updates_state"))


def gdn_probe(test):
    """Is the pool that comes back the one that went in?"""
    definition = conftest.definition_of(test)
    inputs = gdn_inputs(definition, test.SIZES[0].axes)
    pool = gdn_parts(definition, inputs)["state"]
    found = dict(zip(definition["outputs"], conftest.run_reference(test, inputs)))
    states = next(found[name] for name in found if "state" in name.lower())
    return {"updates_state": float(not torch.equal(states, pool))}


def gdn_check_layout(definition):
    words = [definition["name"], *definition.get("tags", [])]
    if any(w in word for word in words for w in ("v-last", "v_last", "k-major")):
        raise NotImplementedError("states lie [V, K] there")


def gdn_answer(test, output, states):
    """As many as the definition has, in its order."""
    names = conftest.definition_of(test)["outputs"]
    return tuple(states if "state" in name.lower() else output for name in names)


def gdn_outputs(test, inputs, parts, output, states):
    """New states in their slots, where there is a pool."""
    if "indices" in parts:
        pool = parts["state"].clone()
        if gdn_updates(test, inputs):
            pool[parts["indices"].long()] = states
        states = pool
    return gdn_answer(test, output, states)


def gdn_flashinfer(test, inputs):
    definition, device = conftest.definition_of(test), conftest.device_of(inputs)
    parts = gdn_parts(definition, inputs)
    q, k, v, state = parts["q"], parts["k"], parts["v"], parts.get("state")
    gdn_check_layout(definition)
    scale, l2norm = parts["scale"], parts["l2norm"]
    if "seqlens" in parts:
        if "indices" in parts:
            raise NotImplementedError("packed, it takes a state of each sequence")
        prefill = conftest.need("flashinfer.gdn_prefill", device)
        conftest.need_capability(device, 9)
        decay, beta = gdn_gates(parts)
        new_state = q.new_zeros(
            len(parts["seqlens"]) - 1, v.shape[1], v.shape[2], q.shape[2]
        ).float()
        found = prefill.chunk_gated_delta_rule(
            q,
            k,
            v,
            g=decay.exp(),
            beta=beta,
            scale=scale,
            initial_state=state,
            output_final_state=True,
            cu_seqlens=parts["seqlens"],
            use_qk_l2norm_in_kernel=l2norm,
            output_state=new_state,
        )
        return gdn_answer(test, *found)
    conftest.need("cutlass", device)  # what its kernels are written in
    decode = conftest.need("flashinfer.gdn_decode", device)
    conftest.need_capability(device, 9)
    gates = (parts["log"], parts["a"], parts["bias"], parts["b"])
    if "indices" not in parts:
        if q.shape[1] > 1 or state is None:
            raise NotImplementedError("without a pool it takes one token and a state")
        found = decode.gated_delta_rule_decode_pretranspose(
            q, k, v, state, *gates, scale=scale, use_qk_l2norm=l2norm
        )
        return gdn_answer(test, *found)
    if q.shape[1] < 2:
        raise NotImplementedError("with a pool it takes more than one token")
    found = decode.gated_delta_rule_mtp(
        q,
        k,
        v,
        state,
        parts["indices"].int(),
        *gates,
        scale=scale,
        disable_state_update=not gdn_updates(test, inputs),
        use_qk_l2norm=l2norm,
    )
    return gdn_answer(test, *found)


def gdn_sglang(test, inputs):
    """Takes the raw gates. States lie [V, K] in slots, as here."""
    definition, device = conftest.definition_of(test), conftest.device_of(inputs)
    path = "sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent"
    module = conftest.need(path, device)
    parts = gdn_parts(definition, inputs)
    gdn_check_layout(definition)
    packed, state = "seqlens" in parts, parts.get("state")
    if state is None:
        raise NotImplementedError("it takes a state")
    q, k, v, a, b = (
        parts[name].unsqueeze(0) if packed else parts[name] for name in "qkvab"
    )
    count = len(parts["seqlens"]) - 1 if packed else len(q)
    slots = parts.get("indices", torch.arange(count, device=device)).int()
    offsets = torch.arange(len(q) + 1, device=device) * q.shape[1]
    output = module.fused_sigmoid_gating_delta_rule_update(
        A_log=parts["log"],
        a=a.reshape(-1, a.shape[-1]),
        dt_bias=parts["bias"],
        softplus_beta=1.0,
        softplus_threshold=20.0,
        q=q.reshape(1, -1, *q.shape[2:]),
        k=k.reshape(1, -1, *k.shape[2:]),
        v=v.reshape(1, -1, *v.shape[2:]),
        b=b.reshape(1, -1, b.shape[-1]),
        initial_state_source=state,
        initial_state_indices=slots,
        scale=parts["scale"],
        use_qk_l2norm_in_kernel=parts["l2norm"],
        cu_seqlens=parts["seqlens"] if packed else offsets,
        disable_state_update="indices" in parts and not gdn_updates(test, inputs),
    )
    output = output.reshape(parts["v"].shape)
    return gdn_answer(test, output, state)


def gdn_fla(test, inputs):
    """States lie [K, V] there."""
    definition, device = conftest.definition_of(test), conftest.device_of(inputs)
    ops = conftest.need("fla.ops.gated_delta_rule", device)
    parts = gdn_parts(definition, inputs)
    gdn_check_layout(definition)
    packed, state = "seqlens" in parts, parts.get("state")
    if state is not None and "indices" in parts:
        state = state[parts["indices"].long()]
    decay, beta = gdn_gates(parts)
    tokens = (parts["q"], parts["k"], parts["v"], decay, beta)
    q, k, v, decay, beta = (x.unsqueeze(0) if packed else x for x in tokens)
    output, states = ops.fused_recurrent_gated_delta_rule(
        q,
        k,
        v,
        g=decay,
        beta=beta,
        scale=parts["scale"],
        initial_state=None if state is None else state.mT.contiguous(),
        output_final_state=True,
        use_qk_l2norm_in_kernel=parts["l2norm"],
        cu_seqlens=parts["seqlens"] if packed else None,
    )
    output = output.reshape(parts["v"].shape)
    return gdn_outputs(test, inputs, parts, output, states.mT)


# definition: "gdn_decode_qk8_v16_d128_k_last"
class TestGdnDecodeQk8V16D128KLast:
    OP_TYPE = "gdn"
    NAME = "gdn_decode_qk8_v16_d128_k_last"
    VARIANT = 0  # of op family gdn
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=3),
        conftest.size("medium", batch_size=33),
        conftest.size("large", batch_size=512),
    )
    SCALARS = conftest.constants(
        scale=[0.11048543456039804],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gdn_flashinfer,
        gdn_sglang,
        gdn_fla,
    )
    TOLERANCE = staticmethod(gdn_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gdn_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, gdn_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "gdn_mtp_qk2_v4_d128_k_last"
class TestGdnMtpQk2V4D128KLast:
    OP_TYPE = "gdn"
    NAME = "gdn_mtp_qk2_v4_d128_k_last"
    VARIANT = 0  # of op family gdn
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
        conftest.size("small", batch_size=3, seq_len=5, pool_size=8),
        conftest.size("medium", batch_size=1, seq_len=17, pool_size=3),
        conftest.size("medium", batch_size=33, seq_len=2, pool_size=40),
        conftest.size("large", batch_size=64, seq_len=8, pool_size=96),
    )
    SCALARS = conftest.constants(
        scale=[0.11048543456039804],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
        ],
        [  # final_state
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gdn_flashinfer,
        gdn_sglang,
        gdn_fla,
    )
    TOLERANCE = staticmethod(gdn_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gdn_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, gdn_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last"
class TestGdnMtpQkL2normQk2V4D128KLast:
    OP_TYPE = "gdn"
    NAME = "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last"
    VARIANT = 2  # of op family gdn
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=2, pool_size=3),
        conftest.size("small", batch_size=3, seq_len=5, pool_size=8),
        conftest.size("medium", batch_size=1, seq_len=17, pool_size=3),
        conftest.size("medium", batch_size=33, seq_len=2, pool_size=40),
        conftest.size("large", batch_size=64, seq_len=8, pool_size=96),
    )
    SCALARS = conftest.constants(
        scale=[0.11048543456039804],
        use_qk_l2norm=[
            True,
            True,
            True,
            True,
            False,
        ],
        disable_state_update=[
            False,
            True,
            False,
            True,
            False,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (2.6973983046972178e-05, 0.01, 1.0),
            (2.6973983046972178e-05, 0.01, 1.0),
            (2.6973983046972178e-05, 0.01, 1.0),
            (2.6973983046972178e-05, 0.01, 1.0),
            (0.00017619331945484184, 0.01, 1.0),
        ],
        [  # final_state
            (1.52587890625e-05, 0.000244140625, 1.0),
            (0.0, 0.0, 1.0),
            (1.52587890625e-05, 0.000244140625, 1.0),
            (0.0, 0.0, 1.0),
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gdn_flashinfer,
        gdn_sglang,
        gdn_fla,
    )
    TOLERANCE = staticmethod(gdn_tolerance)
    JUDGE = None
    REFERENCE = """\
import math

import torch
import torch.nn.functional as F


@torch.no_grad()
def run(q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b, scale, use_qk_l2norm, disable_state_update):
    q, k = q.float(), k.float()
    if use_qk_l2norm:
        q = q / q.norm(dim=-1, keepdim=True)
        k = k / k.norm(dim=-1, keepdim=True)
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gdn_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, gdn_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "gdn_prefill_qk2_v4_d128_k_last"
class TestGdnPrefillQk2V4D128KLast:
    OP_TYPE = "gdn"
    NAME = "gdn_prefill_qk2_v4_d128_k_last"
    VARIANT = 0  # of op family gdn
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
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", total_seq_len=5, num_seqs=1, len_cu_seqlens=2),
        conftest.size("small", total_seq_len=33, num_seqs=2, len_cu_seqlens=3),
        conftest.size("medium", total_seq_len=226, num_seqs=17, len_cu_seqlens=18),
        conftest.size("large", total_seq_len=16384, num_seqs=8, len_cu_seqlens=9),
    )
    SCALARS = conftest.constants(
        scale=[0.11048543456039804],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gdn_flashinfer,
        gdn_sglang,
        gdn_fla,
    )
    TOLERANCE = staticmethod(gdn_tolerance)
    JUDGE = None
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

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gdn_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, gdn_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
