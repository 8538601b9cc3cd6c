"""What generated pytest files have of attention: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest


def attention_index(name):
    """The part of an index vector. They are all of one kind, so that only a name tells."""
    word = name.lower()
    of_queries = word[0] == "q" or "qo_" in word or "_q" in word
    offsets = "qo_indptr" if of_queries else "kv_indptr"
    parts = {
        "last": "last_page_len",
        "indices": "kv_indices",
        "indptr": offsets,
        "cu_seqlens": offsets,
        "offsets": offsets,
    }
    return next(part for key, part in parts.items() if key in word)


def attention_axes(definition, spec):
    """Its axes as they are compared: a const one is as good as another of its value."""
    axes = definition["axes"]
    return [
        axes[name]["value"] if axes[name]["type"] == "const" else name
        for name in spec["shape"]
    ]


def attention_results(definition):
    """Names of the output and, if there is one, of lse, which has no head dim."""
    specs = definition["outputs"]
    return sorted(specs, key=lambda name: -len(specs[name]["shape"]))


def attention_tensors(definition, names):
    """{part: name} of queries, keys and values. A query has the output's tokens and heads; what is as wide as the output
    is no rotary part. Keys come before values, unless their names say otherwise."""
    output = attention_axes(
        definition, definition["outputs"][attention_results(definition)[0]]
    )
    axes = {
        name: attention_axes(definition, definition["inputs"][name]) for name in names
    }
    if len(names) == 4:
        found = {}
        for name in names:
            part = "q" if axes[name][:2] == output[:2] else "k"
            found[part if axes[name][2] == output[2] else part + "_pe"] = name
        return found
    q, k, v = sorted(names, key=lambda x: (len(axes[x]), axes[x][:2] != output[:2]))
    if k[0] == "v" and v[0] == "k":
        k, v = v, k
    return {"q": q, "k": k, "v": v}


def attention_parts(definition):
    """{part: name} of the inputs, whatever their order and names, as the op family has them: kernels/attention_roles.c.
    Nothing else looks at either. Latent attention has q, k, which are its values too, and of both a part "_pe"."""
    parts, tensors = {}, []
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            parts["scale"] = name
        elif "float" in spec["dtype"]:
            tensors.append(name)
        else:
            sparse = len(spec["shape"]) == 2
            parts["sparse" if sparse else attention_index(name)] = name
    return parts | attention_tensors(definition, tensors)


def attention_int32(value):
    """What libraries take for offsets and indices, which a definition may have in 64 bits."""
    whole = isinstance(value, torch.Tensor) and not value.is_floating_point()
    return value.int() if whole else value


def attention_given(definition, inputs):
    """{part: value} of inputs by name, for calls."""
    return {
        part: attention_int32(inputs[name])
        for part, name in attention_parts(definition).items()
    }


def attention_named(definition, parts, given, device):
    """Inputs by name, in the definition's order and dtypes, of {part: value}."""
    inputs = {name: given[part] for part, name in parts.items()}
    for name in conftest.tensor_inputs(definition):
        dtype = conftest.dtype_of(definition["inputs"][name])
        inputs[name] = inputs[name].to(dtype).to(device)
    return {name: inputs[name] for name in definition["inputs"]}


def attention_shapes(definition, parts, axes):
    """{part: shape} of the inputs that are tensors."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    return {
        part: conftest.shape_of(specs[name], sizes)
        for part, name in parts.items()
        if specs[name]["shape"] is not None
    }


def attention_noise(shapes, generator):
    """{part: values} of queries, keys and values."""
    return {
        part: conftest.noise(shapes[part], torch.float32, "cpu", generator) * 1.7
        for part in ("q", "q_pe", "k", "k_pe", "v")
        if part in shapes
    }


def attention_excite(given):
    """Logits of the first query beyond what exp takes, all alike."""
    given["q"][:1, 0, 0] = 1296.0
    given["k"][..., 0] = 1.0


def attention_edges(definition, axes):
    """No sequence, and one with one query and one key."""
    parts, found = attention_parts(definition), []
    more = {"q": 0, "last_page_len": 0, "qo_indptr": 1, "kv_indptr": 1}
    more |= {"kv_indices": 0} if "kv_indices" in parts else {"k": 0, "v": 0}
    for count in (0, 1):
        edge = {
            definition["inputs"][parts[part]]["shape"][0]: count + beyond
            for part, beyond in more.items()
            if part in parts
        }
        found.append({**axes, **{axis: edge[axis] for axis in axes if axis in edge}})
    return found


def attention_split(total, parts, generator, least=1, most=None):
    """`total` as a list of random parts, each of at least `least` where that is possible, at most `most` (a list)."""
    if parts == 0:
        return []
    least = min(least, total // parts)
    most = [min(m, total) for m in most] if most else [total] * parts
    lengths = [min(least, m) for m in most]
    left = total - sum(lengths)
    while left > 0:
        open_parts = [i for i in range(parts) if lengths[i] < most[i]] or [parts - 1]
        chosen = open_parts[torch.randint(len(open_parts), (), generator=generator)]
        room = (
            most[chosen] - lengths[chosen] if lengths[chosen] < most[chosen] else left
        )
        step = torch.randint(1, min(room, left) + 1, (), generator=generator).item()
        lengths[chosen] += step
        left -= step
    return lengths


def attention_offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


def attention_tolerance(definition, axes, index):
    """Kernels keep probabilities in the values' dtype on the way: averages are good to a few units of it, lse to 1e-2."""
    output = list(definition["outputs"])[index] == attention_results(definition)[0]
    return (1e-2, 2e-2, 1.0) if output else (1e-2, 1e-3, 1.0)


def attention_flashinfer_heads(q, v):
    """FlashInfer compiles for other sizes, too, and what comes of it reads where nothing is."""
    pair = (q.shape[-1], v.shape[-1])
    if pair not in ((64, 64), (128, 128), (256, 256), (192, 128)):
        raise NotImplementedError(
            f"it has no kernel for heads of {pair[0]} and {pair[1]}"
        )


def attention_workspace(device):
    return torch.empty(256 << 20, dtype=torch.uint8, device=device)


def attention_ordered(definition, *results):
    """Output and lse in the definition's order; without lse if it has none."""
    found = dict(zip(attention_results(definition), results, strict=False))
    return [found[name] for name in definition["outputs"]]


def attention_outputs(definition, output, lse):
    """lse of an empty row is -inf; older releases have a large negative number."""
    lse = torch.where(lse <= -1e4, -torch.inf, lse.float())
    return attention_ordered(definition, output, lse)


def attention_causal(test):
    """Whether a query sees only the keys up to its own place: as the op family takes it from name, tags and description."""
    return test.VARIANT == 1
