"""gated_delta_rule in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def gated_delta_rule_says(definition, *words):
    """Does the name or a tag hold one of the words?"""
    told = " ".join([definition["name"], *definition.get("tags", [])])
    told = told.lower().replace("-", "_")
    return any(word in told for word in words)


def gated_delta_rule_scalar(name, key_size):
    """Values of Python scalars, none that a reference would have by heart."""
    if "lower_bound" in name:
        return -5.0
    return 1.25 * key_size**-0.5 if "scale" in name else True


def gated_delta_rule_offsets(total, parts, generator):
    """Sequences of random lengths, none of them empty if there are tokens enough."""
    if parts == 0:
        return torch.zeros(1, dtype=torch.int64)
    cuts = torch.randperm(max(total - 1, 0), generator=generator)[: parts - 1] + 1
    cuts = torch.cat([cuts, torch.full((parts - 1 - len(cuts),), total)])
    return torch.cat([torch.tensor([0]), cuts.sort().values, torch.tensor([total])])


def gated_delta_rule_gates(values, raw):
    """As they are: logarithms, from hardly any decay to nearly all, by head and key. Else what makes many sizes."""
    if raw:
        return values * 3
    classes = sum(
        torch.arange(n).view(-1, *[1] * i) for i, n in enumerate(values.shape[::-1])
    )
    levels = torch.tensor([2.0**-4, 2.0, 2.0**-8, 0.5])
    return -values.abs() * levels[classes % 4]


def gated_delta_rule_inputs(definition, axes, device="cpu", seed=0):
    """Keys of a norm near 1, so that the state contracts; a first state of which something is left at the end."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    key_size = sizes[definition["inputs"]["q"]["shape"][-1]]
    raw = any(word in definition["inputs"] for word in ("A_log", "lower_bound"))
    logits = any("beta_sigmoid" in name for name in definition["inputs"])
    logits = logits or gated_delta_rule_says(definition, "beta_sigmoid")
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = gated_delta_rule_scalar(name, key_size)
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if "int" in spec["dtype"]:
            total = sizes[definition["inputs"]["q"]["shape"][-3]]
            values = gated_delta_rule_offsets(total, shape[0] - 1, generator)
        elif name == "k":
            values *= (3 / key_size) ** 0.5
        elif "state" in name:
            values *= 0.5
        elif name in ("g", "gk", "g_gamma"):
            values = gated_delta_rule_gates(values, raw)
        elif name == "A_log":
            values -= 2
        elif name == "dt_bias":
            values *= 2
        elif name in ("beta", "b"):
            values = values * 4 if logits or name == "b" else (values + 1) / 2
        inputs[name] = values.to(dtype).to(device)
    return inputs


def gated_delta_rule_edges(definition, axes):
    """No sequence, and one of one token."""
    inputs, edges = definition["inputs"], []
    offsets = inputs.get("cu_seqlens")
    for count in (0, 1):
        edge = {**axes, inputs["q"]["shape"][-3]: count}
        if offsets is None:
            edge[inputs["q"]["shape"][0]] = count
            edge[inputs["q"]["shape"][1]] = 1
        else:
            states = [
                s
                for n, s in {**inputs, **definition["outputs"]}.items()
                if "state" in n
            ]
            edge.update({state["shape"][0]: count for state in states})
            edge[offsets["shape"][0]] = count + 1
        edges.append({axis: edge[axis] for axis in axes})
    return edges


def gated_delta_rule_tolerance(definition, axes, index):
    """Kernels multiply tiles in the inputs' dtype: some of 256 parts of a typical element, which is around 1/2."""
    return 2e-2, 2e-2, 0.999


def gated_delta_rule_log_gates(inputs):
    """The logarithm of what stays of the state."""
    gate = inputs["g"].float()
    rate = inputs["A_log"].exp() if "A_log" in inputs else 1.0
    if "dt_bias" in inputs:
        gate = gate + inputs["dt_bias"]
    if "lower_bound" in inputs:
        return inputs["lower_bound"] * torch.sigmoid(rate * gate)
    if "A_log" in inputs:
        return -rate * torch.nn.functional.softplus(gate)
    return gate


def gated_delta_rule_strength(definition, inputs):
    beta = inputs["b" if "b" in inputs else "beta"]
    switches = {
        word: bool(value)
        for name, value in inputs.items()
        for word in ("beta_sigmoid", "neg_eigval")
        if word in name
    }
    said = gated_delta_rule_says(definition, "beta_sigmoid") or "b" in inputs
    if switches.get("beta_sigmoid", said):
        beta = torch.sigmoid(beta.float())
    if switches.get("neg_eigval", gated_delta_rule_says(definition, "neg_eigval")):
        beta = 2 * beta
    return beta


def gated_delta_rule_fla(test, inputs):
    """States are [K, V] there; packed sequences are one row of a batch."""
    ops = conftest.need("fla.ops.gated_delta_rule", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    if min(inputs["q"].shape) == 0:
        raise NotImplementedError("it launches no empty grid")
    flat = inputs["q"].dim() == 3
    words = {name: inputs[name] for name in "qkv"}
    words["g"] = gated_delta_rule_log_gates(inputs)
    words["beta"] = gated_delta_rule_strength(definition, inputs)
    norms = [value for name, value in inputs.items() if "l2norm" in name]
    norm = norms[0] if norms else gated_delta_rule_says(definition, "l2norm")
    if flat:
        words = {name: value[None] for name, value in words.items()}
    words["use_qk_l2norm_in_kernel"] = bool(norm)
    first = gated_delta_rule_says(definition, "v_first", "k_last")
    state = inputs.get("initial_state")
    if state is not None:
        state = (state.transpose(-1, -2) if first else state).float().contiguous()
    if "cu_seqlens" in inputs:
        words["cu_seqlens"] = inputs["cu_seqlens"].long()
    words["scale"] = inputs.get("scale") or None
    words |= {"initial_state": state, "output_final_state": True}
    if gated_delta_rule_says(definition, "chunk"):
        output, state = ops.chunk_gated_delta_rule(**words)
    else:
        output, state = ops.fused_recurrent_gated_delta_rule(**words)
    state = state.transpose(-1, -2) if first else state
    return (output[0] if flat else output, state)[: len(definition["outputs"])]
