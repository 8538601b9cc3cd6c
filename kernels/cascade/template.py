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


def cascade_flashinfer(test, inputs):
    cascade = conftest.need("flashinfer.cascade", conftest.device_of(inputs))
    values = list(inputs.values())
    if "merge_states" in test.NAME:
        return cascade.merge_states(*values)
    if "in_place" in test.NAME:
        cascade.merge_state_in_place(*values)
        return values[0], values[1]
    return cascade.merge_state(*values)


def cascade_sglang(test, inputs):
    """merge_state takes logarithms to base 2; merge_state_v2, all that newer releases have, natural ones."""
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    values = list(inputs.values())
    if "merge_states" in test.NAME or len(values) != 4:
        raise NotImplementedError("it merges two states")
    if hasattr(kernel, "merge_state"):
        return kernel.merge_state(*values)
    ln2 = torch.log(torch.tensor(2.0, device=values[1].device))
    v_a, s_a, v_b, s_b = values
    merged, lse = kernel.merge_state_v2(v_a, s_a * ln2, v_b, s_b * ln2)
    return merged, lse / ln2


def cascade_edges(definition, axes):
    """No token, and one."""
    token = next(iter(definition["inputs"].values()))["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]
