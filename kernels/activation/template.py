"""activation in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def activation_inputs(definition, axes, device="cpu", seed=0):
    """Gates on [-8, 8), where silu, gelu and its tanh form are told apart, zeros among them; what they gate on [-2, 2)."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator) * 2
        gates = values[..., : shape[-1] // 2]
        gates *= 4
        gates[torch.randint(0, 16, gates.shape, generator=generator) == 0] = 0.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def activation_kind(definition):
    """The kernel's name. Nothing but the definition's name says which it is; else its fi_api tag, and its op_type."""
    tags = [tag for tag in definition.get("tags", []) if tag.startswith("fi_api:")]
    words = [definition["name"], *tags, definition["op_type"]]
    kinds = {
        "gelu_tanh": "gelu_tanh_and_mul",
        "geglu_tanh": "gelu_tanh_and_mul",
        "gelu": "gelu_and_mul",
        "geglu": "gelu_and_mul",
        "silu": "silu_and_mul",
        "swiglu": "silu_and_mul",
    }
    for text in words:
        for word, kind in kinds.items():
            if word in text:
                return kind
    raise NotImplementedError(f"nothing says which activation {definition['name']} is")


def activation_call(test, inputs, module):
    (x,) = inputs.values()
    if x.dtype == torch.float32:
        raise NotImplementedError("it takes float16 and bfloat16")
    return getattr(module, activation_kind(conftest.definition_of(test)))(
        x.contiguous()
    )


def activation_flashinfer(test, inputs):
    module = conftest.need("flashinfer.activation", conftest.device_of(inputs))
    return activation_call(test, inputs, module)


def activation_sglang(test, inputs):
    module = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return activation_call(test, inputs, module)


def activation_torch(test, inputs):
    """silu or gelu of the first half, in float64, times the second."""
    (x,), definition = inputs.values(), conftest.definition_of(test)
    gate, value = x.double().chunk(2, dim=-1)
    functional, kind = torch.nn.functional, activation_kind(definition)
    if kind == "silu_and_mul":
        gate = functional.silu(gate)
    else:
        form = "tanh" if kind == "gelu_tanh_and_mul" else "none"
        gate = functional.gelu(gate, approximate=form)
    (output,) = definition["outputs"].values()
    return (gate * value).to(conftest.dtype_of(output))
