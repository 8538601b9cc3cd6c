"""layernorm in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def layernorm_parts(definition):
    """Names of the activations, of the weight and of the bias (None without one), which is the second vector where no name
    says that it is the first."""
    specs = definition["inputs"]
    names = conftest.tensor_inputs(definition)
    hidden = next(name for name in names if len(specs[name]["shape"]) > 1)
    vectors = [name for name in names if name != hidden]
    if "bias" in vectors[0] or "beta" in vectors[0]:
        vectors.reverse()
    return hidden, *vectors, *[None] * (2 - len(vectors))


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
    names = layernorm_parts(conftest.definition_of(test))
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    x, weight, bias = (inputs.get(name) for name in names)
    if bias is None or not weight.dtype == bias.dtype == torch.float32:
        raise NotImplementedError("it takes a weight and a bias of float32")
    if x.dtype != torch.bfloat16:
        raise NotImplementedError("it takes activations of bfloat16")
    return norm.layernorm(x.contiguous().view(-1, x.shape[-1]), weight, bias, eps).view(
        x.shape
    )


def layernorm_probe(test):
    """Rows of x and -x by turns answer with x / sqrt(x² + eps) where the weight is 1; x² is below any epsilon in use."""
    definition, x = conftest.definition_of(test), 2.0**-20
    hidden, weight, _ = layernorm_parts(definition)
    inputs = layernorm_inputs(definition, test.SIZES[0].axes)
    inputs = {name: torch.zeros_like(value) for name, value in inputs.items()}
    inputs[hidden][..., 0::2], inputs[hidden][..., 1::2] = x, -x
    inputs[weight] += 1.0
    y = conftest.run_reference(test, inputs)[0].double().abs().mean().item()
    return {"eps": conftest.round_constant((x / y) ** 2 - x**2 if y else 0.0)}


def layernorm_torch(test, inputs):
    """layer_norm in float64."""
    definition = conftest.definition_of(test)
    names = layernorm_parts(definition)
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    x, w, b = (inputs[name].double() if name else None for name in names)
    (output,) = definition["outputs"].values()
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)
    return normed.to(conftest.dtype_of(output))
