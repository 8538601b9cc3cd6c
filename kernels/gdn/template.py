"""gdn in the generated pytest files: what follows the imports is pasted into each of them."""

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
