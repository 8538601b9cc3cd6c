"""gemm in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def gemm_inputs(definition, axes, device="cpu", seed=0):
    """Multiples of 1/128 on [-1, 1): products and their sums are exact in float32, so that rounding tells nothing apart
    but what is really wrong. One element in 128 of the first matrix is large."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = torch.randint(-128, 128, shape, generator=generator) / 128
        if not inputs:
            large = torch.randint(0, 128, shape, generator=generator) == 0
            values = torch.where(large, values * 8, values)
        inputs[name] = values.to(dtype).to(device)
    return inputs


def gemm_torch(test, inputs):
    """In float64, whichever of B's axes is the one that A has too."""
    definition = conftest.definition_of(test)
    (a, b), (output,) = definition["inputs"], definition["outputs"].values()
    if definition["inputs"][a]["shape"][:-1] != output["shape"][:-1]:
        a, b = b, a
    left = inputs[a].double()
    right = inputs[b].double()
    if definition["inputs"][b]["shape"][-1] == definition["inputs"][a]["shape"][-1]:
        right = right.mT
    return torch.matmul(left, right).to(conftest.dtype_of(output))
