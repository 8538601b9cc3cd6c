"""cascade in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def cascade_inputs(definition, axes, device="cpu", seed=0):
    """Log-sum-exps near each other, and far apart both ways; both states of a row are never empty."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    ranks = [
        len(spec["shape"]) for spec in definition["inputs"].values() if spec["shape"]
    ]
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if dtype == torch.bool:
            values = values > -0.3
        elif len(shape) < max(ranks):
            values = values * 10
            values.view(-1)[::7] *= 4
        inputs[name] = values.to(dtype).to(device)
    return inputs


def cascade_parts(inputs):
    """Values and logsumexps in their order, by their ranks; a list of the mask, or an empty one."""
    widest = max(x.dim() for x in inputs.values())
    parts = [[], [], []]
    for x in inputs.values():
        parts[min(widest - x.dim(), 2)].append(x)
    return parts


def cascade_outputs(test, v, s):
    specs = conftest.definition_of(test)["outputs"].values()
    return [v if len(spec["shape"]) == 3 else s for spec in specs]


def cascade_flashinfer(test, inputs):
    cascade = conftest.need("flashinfer.cascade", conftest.device_of(inputs))
    v, s, mask = cascade_parts(inputs)
    if len(v) == 1:
        result = cascade.merge_states(v[0], s[0])
    elif mask:
        cascade.merge_state_in_place(v[0], s[0], v[1], s[1], mask[0].bool())
        result = v[0], s[0]
    else:
        result = cascade.merge_state(v[0], s[0], v[1], s[1])
    return cascade_outputs(test, *result)


def cascade_sglang(test, inputs):
    """merge_state takes logarithms to base 2; merge_state_v2, all that newer releases have, natural ones."""
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    v, s, mask = cascade_parts(inputs)
    if len(v) == 1 or mask:
        raise NotImplementedError("it merges two states")
    if hasattr(kernel, "merge_state"):
        return cascade_outputs(test, *kernel.merge_state(v[0], s[0], v[1], s[1]))
    ln2 = torch.log(torch.tensor(2.0, device=s[0].device))
    merged, lse = kernel.merge_state_v2(v[0], s[0] * ln2, v[1], s[1] * ln2)
    return cascade_outputs(test, merged, lse / ln2)


def cascade_edges(definition, axes):
    """No token, and one."""
    token = next(iter(definition["inputs"].values()))["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]
