"""What generated pytest files have of linear attention: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest


def recurrence_says(definition, *words):
    """Does the name or a tag hold one of the words?"""
    told = " ".join([definition["name"], *definition.get("tags", [])])
    told = told.lower().replace("-", "_")
    return any(word in told for word in words)


def recurrence_part(name, spec):
    """What an input is: the name that most definitions have for it."""
    if spec["shape"] is not None and "int" in spec["dtype"]:
        return "cu_seqlens"
    scalars = ("l2norm", "beta_sigmoid", "neg_eigval", "lower_bound", "scale")
    words = {
        "state": "initial_state",
        "a_log": "A_log",
        "bias": "dt_bias",
        "gamma": "g_gamma",
    }
    if spec["shape"] is None:
        words = {word: word for word in scalars}
    for word, part in words.items():
        if word in name.lower():
            return part
    if name == "h0":
        return "initial_state"
    return name if name in ("g", "gk", "b", "beta") else name[0].lower()


def recurrence_parts(definition, values):
    """Values of inputs by part."""
    specs = definition["inputs"]
    return {recurrence_part(name, spec): values[name] for name, spec in specs.items()}


def recurrence_is_state(output):
    return "state" in output.lower() or output == "ht"


def recurrence_scalar(part, key_size):
    """Values of Python scalars, none that a reference would have by heart."""
    if part == "lower_bound":
        return -5.0
    return 1.25 * key_size**-0.5 if part == "scale" else True


def recurrence_offsets(total, parts, generator):
    """Sequences of random lengths, none of them empty if there are tokens enough."""
    if parts == 0:
        return torch.zeros(1, dtype=torch.int64)
    cuts = torch.randperm(max(total - 1, 0), generator=generator)[: parts - 1] + 1
    cuts = torch.cat([cuts, torch.full((parts - 1 - len(cuts),), total)])
    return torch.cat([torch.tensor([0]), cuts.sort().values, torch.tensor([total])])


def recurrence_gates(values, raw):
    """As they are: logarithms, from hardly any decay to nearly all, by head and key. Else what makes many sizes."""
    if raw:
        return values * 3
    classes = sum(
        torch.arange(n).view(-1, *[1] * i) for i, n in enumerate(values.shape[::-1])
    )
    levels = torch.tensor([2.0**-4, 2.0, 2.0**-8, 0.5])
    return -values.abs() * levels[classes % 4]


def recurrence_inputs(definition, axes, device="cpu", seed=0):
    """Keys of a norm near 1, so that the state contracts; a first state of which something is left at the end."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    parts = recurrence_parts(definition, definition["inputs"])
    key_size = sizes[parts["q"]["shape"][-1]]
    raw = any(word in parts for word in ("A_log", "lower_bound"))
    logits = "beta_sigmoid" in parts or recurrence_says(definition, "beta_sigmoid")
    inputs = {}
    for name, spec in definition["inputs"].items():
        part = recurrence_part(name, spec)
        if spec["shape"] is None:
            inputs[name] = recurrence_scalar(part, key_size)
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if part == "cu_seqlens":
            total = sizes[parts["q"]["shape"][-3]]
            values = recurrence_offsets(total, shape[0] - 1, generator)
        elif part == "k":
            values *= (3 / key_size) ** 0.5
        elif part == "initial_state":
            values *= 0.5
        elif part in ("g", "gk", "g_gamma"):
            values = recurrence_gates(values, raw)
        elif part == "A_log":
            values -= 2
        elif part == "dt_bias":
            values *= 2
        elif part in ("beta", "b"):
            values = values * 4 if logits or part == "b" else (values + 1) / 2
        inputs[name] = values.to(dtype).to(device)
    return inputs


def recurrence_edges(definition, axes):
    """No sequence, and one of one token."""
    parts, edges = recurrence_parts(definition, definition["inputs"]), []
    offsets, tokens = parts.get("cu_seqlens"), parts["q"]["shape"]
    for count in (0, 1):
        edge = {**axes, tokens[-3]: count}
        if offsets is None:
            edge[tokens[0]] = count
            edge[tokens[1]] = 1
        else:
            outputs = definition["outputs"]
            states = [outputs[name] for name in outputs if recurrence_is_state(name)]
            if "initial_state" in parts:
                states.append(parts["initial_state"])
            edge.update({state["shape"][0]: count for state in states})
            edge[offsets["shape"][0]] = count + 1
        edges.append({axis: edge[axis] for axis in axes})
    return edges


def recurrence_tolerance(definition, axes, index):
    """Kernels multiply tiles in the inputs' dtype: some of 256 parts of a typical element, which is around 1/2."""
    return 2e-2, 2e-2, 0.999


def recurrence_log_gates(inputs):
    """The logarithm of what stays of the state, by head or by head and key."""
    gate = inputs["gk" if "gk" in inputs else "g"].float()
    by_key = gate.dim() == inputs["v"].dim()
    rate = inputs["A_log"].exp() if "A_log" in inputs else torch.ones(())
    rate = rate[..., None] if by_key else rate
    if "dt_bias" in inputs:
        gate = gate + inputs["dt_bias"].view(gate.shape[-2 if by_key else -1 :])
    if "lower_bound" in inputs:
        return inputs["lower_bound"] * torch.sigmoid(rate * gate)
    if "A_log" in inputs:
        return -rate * torch.nn.functional.softplus(gate)
    return gate


def recurrence_strength(definition, inputs):
    beta = inputs["b" if "b" in inputs else "beta"]
    said = recurrence_says(definition, "beta_sigmoid") or "b" in inputs
    if inputs.get("beta_sigmoid", said):
        beta = torch.sigmoid(beta.float())
    if inputs.get("neg_eigval", recurrence_says(definition, "neg_eigval")):
        beta = 2 * beta
    return beta


def recurrence_normed(definition, inputs):
    """Are q and k normalised in the operation?"""
    return bool(inputs.get("l2norm", recurrence_says(definition, "l2norm")))


def recurrence_heads(inputs):
    """q, k and v, a head of q and k for each of v."""
    sharing = inputs["v"].shape[-2] // inputs["q"].shape[-2]
    q, k = (inputs[name].repeat_interleave(sharing, dim=-2) for name in "qk")
    return {"q": q, "k": k, "v": inputs["v"]}


def recurrence_unit(words):
    """The same with q and k of norm 1."""
    unit = {
        name: torch.nn.functional.normalize(words[name].float(), dim=-1)
        for name in "qk"
    }
    return words | {name: value.to(words[name].dtype) for name, value in unit.items()}


def recurrence_call(test, inputs, chunk, recurrent, words, **more):
    """One of two forms of a kernel, of inputs by part. States are [K, V] there; packed sequences are one row of a batch, in
    each of `words`."""
    definition = conftest.definition_of(test)
    if min(inputs["q"].shape) == 0:
        raise NotImplementedError("it launches no empty grid")
    flat = inputs["q"].dim() == 3
    if flat:
        words = {name: value[None] for name, value in words.items()}
    first = recurrence_says(definition, "v_first", "k_last")
    state = inputs.get("initial_state")
    if state is not None:
        state = (state.transpose(-1, -2) if first else state).float().contiguous()
    if "cu_seqlens" in inputs:
        more["cu_seqlens"] = inputs["cu_seqlens"].long()
    more["scale"] = inputs.get("scale") or None
    kernel = chunk if recurrence_says(definition, "chunk") else recurrent
    output, state = kernel(
        **words, **more, initial_state=state, output_final_state=True
    )
    state = state.transpose(-1, -2) if first else state
    found = (output[0] if flat else output, state)
    return tuple(found[recurrence_is_state(name)] for name in definition["outputs"])
