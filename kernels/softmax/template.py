"""softmax in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def softmax_parts(definition):
    """Names of the logits, which have the output's rank, and of the temperature (None without one)."""
    specs, (output,) = definition["inputs"], definition["outputs"].values()
    ranks = {name: len(spec["shape"] or ()) for name, spec in specs.items()}
    logits = next(name for name in specs if ranks[name] == len(output["shape"]))
    return logits, next((name for name in specs if name != logits), None)


def softmax_inputs(definition, axes, device="cpu", seed=0):
    """Rows of every width of spread, one far from 0, one of equal values, one with a single large value."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 0.7
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if name == softmax_parts(definition)[1]:
            values = values * 0.6 + 1.1
        else:
            rows = values.view(-1, shape[-1])
            rows *= torch.tensor([4.0, 8.0, 0.5, 1.0]).repeat(len(rows))[
                : len(rows), None
            ]
            if len(rows) > 4:
                rows[1] += 60.0
                rows[2] = 1.0
                rows[3, -1] = 30.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def softmax_torch(test, inputs):
    """In float64."""
    definition = conftest.definition_of(test)
    (output,) = definition["outputs"].values()
    logits, temperature = softmax_parts(definition)
    logits = inputs[logits].double()
    if temperature is not None:
        temperature = inputs[temperature]
        if isinstance(temperature, torch.Tensor):
            temperature = temperature.double().view(-1, *[1] * (logits.dim() - 1))
        logits = logits / temperature
    return logits.softmax(-1).to(conftest.dtype_of(output))


def softmax_flashinfer(test, inputs):
    sampling = conftest.need("flashinfer.sampling", conftest.device_of(inputs))
    logits, temperature = softmax_parts(conftest.definition_of(test))
    logits, temperature = inputs[logits], inputs.get(temperature)
    rows = logits.float().contiguous().view(-1, logits.shape[-1])
    return sampling.softmax(rows, temperature=temperature).view(logits.shape)
