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


def layernorm_probe(test):
    """Rows of x and -x by turns answer with x / sqrt(x² + eps) where the weight is 1; x² is below any epsilon in use."""
    definition, x = conftest.definition_of(test), 2.0**-20
    hidden, *parameters = conftest.tensor_inputs(definition)
    inputs = layernorm_inputs(definition, test.SIZES[0].axes)
    inputs = {name: torch.zeros_like(value) for name, value in inputs.items()}
    inputs[hidden][..., 0::2], inputs[hidden][..., 1::2] = x, -x
    for name in parameters:
        inputs[name] += 0.0 if "bias" in name else 1.0
    y = conftest.run_reference(test, inputs)[0].double().abs().mean().item()
    return {"eps": conftest.round_constant((x / y) ** 2 - x**2 if y else 0.0)}


def layernorm_torch(test, inputs):
    """layer_norm in float64."""
    definition = conftest.definition_of(test)
    hidden, *parameters = conftest.tensor_inputs(definition)
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    biases = [name for name in parameters if "bias" in name] or parameters[1:]
    weights = [name for name in parameters if name not in biases]
    x = inputs[hidden].double()
    w = inputs[weights[0]].double() if weights else None
    b = inputs[biases[0]].double() if biases else None
    (output,) = definition["outputs"].values()
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)
    return normed.to(conftest.dtype_of(output))
