"""rope in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def rope_roles(definition):
    """Names of the positions, the cache (None without one) and what is rotated."""
    specs = {
        name: definition["inputs"][name] for name in conftest.tensor_inputs(definition)
    }
    positions = next(name for name, spec in specs.items() if "int" in spec["dtype"])
    token = specs[positions]["shape"][0]
    rest = [name for name in specs if name != positions]
    rotated = [
        name
        for name in rest
        if specs[name]["shape"][0] == token
        and len(specs[name]["shape"]) > 1
        and "cache" not in name
    ]
    caches = [name for name in rest if name not in rotated]
    return positions, caches[0] if caches else None, rotated


def rope_scalar(name):
    """Values of Python scalars, none that a reference would have by heart."""
    for word, value in {
        "rotary_dim": 32,
        "interleave": True,
        "neox": True,
        "theta": 30000.0,
        "scale": 3.0,
        "low_freq": 2.0,
        "high_freq": 5.0,
        "old_context": 6000.0,
    }.items():
        if word in name:
            return value
    raise conftest.Unavailable(f"no value is known for the scalar '{name}'")


def rope_inputs(definition, axes, device="cpu", seed=0):
    """Cosines and sines are noise: a wrong row, column or half then gives quite another answer. Positions: the last, 0,
    1, the last once more, then at random."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    positions, cache, rotated = rope_roles(definition)
    rows = sizes[definition["inputs"][cache]["shape"][0]] if cache else 4096
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = rope_scalar(name)
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if name == positions:
            values = torch.randint(0, max(rows, 1), shape, generator=generator)
            first = torch.tensor([rows - 1, 0, min(1, rows - 1), rows - 1])[
                : len(values)
            ]
            values[: len(first)] = first
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator)
            values *= 2 if name in rotated else 1
        inputs[name] = values.to(dtype).to(device)
    return inputs


def rope_edges(definition, axes):
    """No token, and one."""
    token = definition["inputs"][rope_roles(definition)[0]]["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


def rope_tolerance(definition, axes, index):
    """With a cache the rotation is exact up to one rounding; without, the angles are float32's."""
    spec = list(definition["outputs"].values())[index]
    atol = 1e-6 if rope_roles(definition)[1] else 2.5e-3
    places = {torch.bfloat16: 2**-7, torch.float16: 2**-10}
    return atol, places.get(conftest.dtype_of(spec), 1e-6), 1.0


def rope_is_neox(definition, inputs):
    for name, value in inputs.items():
        if definition["inputs"][name]["shape"] is None and "neox" in name:
            return bool(value)
        if definition["inputs"][name]["shape"] is None and "interleave" in name:
            return not value
    return not any(word in definition["name"] for word in ("interleave", "gptj"))


def rope_given(definition, inputs, word):
    """The Python scalar in whose name the word is, in a list; an empty one where there is none."""
    names = [n for n, spec in definition["inputs"].items() if spec["shape"] is None]
    return [inputs[name] for name in names if word in name][:1]


def rope_rotary_dim(definition, inputs):
    """How much of a head turns: a scalar or an axis says, or None: all of it."""
    given = rope_given(definition, inputs, "rotary_dim")
    return given[0] if given else definition["axes"].get("rotary_dim", {}).get("value")


def rope_number(test, inputs, name):
    """A Python scalar by the words of its name, or a constant."""
    word = name.removeprefix("rope_").removesuffix("_factor").removesuffix("_len")
    given = rope_given(conftest.definition_of(test), inputs, word)
    return given[0] if given else conftest.need_constant(test, name)


def rope_flashinfer(test, inputs):
    rope = conftest.need("flashinfer.rope", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    q, k = [inputs[name].contiguous() for name in rotated]
    neox = rope_is_neox(definition, inputs)
    if cache is not None:
        flat = [x.view(len(x), -1) for x in (q, k)]
        rope.apply_rope_with_cos_sin_cache_inplace(
            inputs[positions], *flat, q.shape[-1], inputs[cache], is_neox=neox
        )
        return q, k
    words = {"rotary_dim": rope_rotary_dim(definition, inputs), "interleave": not neox}
    words["rope_theta"] = rope_number(test, inputs, "rope_theta")
    if test.VARIANT & 4:
        for name in ("low_freq_factor", "high_freq_factor", "old_context_len"):
            words[name] = rope_number(test, inputs, name)
        words["rope_scale"] = rope_number(test, inputs, "rope_scale")
        return rope.apply_llama31_rope_pos_ids(q, k, inputs[positions], **words)
    words["rope_scale"] = 1.0
    if "rope_scale" in test.CONSTANTS or rope_given(definition, inputs, "scale"):
        words["rope_scale"] = rope_number(test, inputs, "rope_scale")
    return rope.apply_rope_pos_ids(q, k, inputs[positions], **words)


def rope_sglang(test, inputs):
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    if cache is None:
        raise NotImplementedError("it takes a cos/sin cache")
    q, k = [inputs[name].contiguous() for name in rotated]
    flat = [x.view(len(x), -1) for x in (q, k)]
    kernel.apply_rope_with_cos_sin_cache_inplace(
        positions=inputs[positions].long(),
        query=flat[0],
        key=flat[1],
        head_size=q.shape[-1],
        cos_sin_cache=inputs[cache],
        is_neox=rope_is_neox(definition, inputs),
    )
    return q, k


def rope_probe(test):
    """At position 1 the last pair (1, 0) turns by theta ** (2 / width - 1), whose tangent comes back."""
    definition = conftest.definition_of(test)
    positions, cache, rotated = rope_roles(definition)
    inputs = rope_inputs(definition, test.SIZES[0].axes)
    width = inputs[rotated[0]].shape[-1]
    if cache is not None or any(not torch.is_tensor(x) for x in inputs.values()):
        return {}
    neox = rope_is_neox(definition, inputs)
    first, second = (width // 2 - 1, width - 1) if neox else (width - 2, width - 1)
    inputs[positions] = torch.ones_like(inputs[positions])
    inputs[rotated[0]] = torch.zeros_like(inputs[rotated[0]])
    inputs[rotated[0]][..., first] = 1.0
    pair = conftest.run_reference(test, inputs)[0].double().flatten(0, -2)[0]
    angle = torch.atan2(pair[second], pair[first]).item()
    if angle == 0:  # what is turned is narrower than the heads
        return {}
    theta = angle ** (width / (2 - width)) if 0 < angle < 1 else 0.0
    return {"rope_theta": conftest.round_constant(theta)}
