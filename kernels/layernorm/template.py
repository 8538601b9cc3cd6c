"""layernorm in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def layernorm_inputs(definition, axes, device="cpu", seed=0):
    """Noise, and rows that show mistakes: one so small that epsilon counts, one of zeros, one far from 0, a huge one."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 4e-6
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if len(shape) > 1:
            rows = values.view(-1, shape[-1])
            scales = (0.002, 0.0, 1.0, 100.0)
            for row, scale in zip(rows, scales, strict=False):
                row *= scale
            if len(rows) > 2:
                rows[2] += 2.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def layernorm_flashinfer(test, inputs):
    norm = conftest.need("flashinfer.norm", conftest.device_of(inputs))
    names = conftest.tensor_inputs(conftest.definition_of(test))
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    x, *parameters = [inputs[name] for name in names]
    if len(parameters) < 2 or any(p.dtype != torch.float32 for p in parameters):
        raise NotImplementedError("it takes a weight and a bias of float32")
    if x.dtype != torch.bfloat16:
        raise NotImplementedError("it takes activations of bfloat16")
    bias = next(i for i, name in enumerate(names[1:]) if "bias" in name or i == 1)
    weight, bias = parameters[1 - bias], parameters[bias]
    return norm.layernorm(x.contiguous().view(-1, x.shape[-1]), weight, bias, eps).view(
        x.shape
    )
