"""mamba_ssu in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def mamba_ssu_part(name, spec):
    """What an input is: by its kind, and of the floats of a token and of the weights by its name."""
    if spec["shape"] is None:
        return "softplus" if "softplus" in name else "pad"
    if "int" in spec["dtype"]:
        return "indices"
    return "state" if len(spec["shape"]) == 4 else name


def mamba_ssu_parts(definition, values):
    """Values of inputs by part."""
    specs = definition["inputs"]
    return {mamba_ssu_part(name, spec): values[name] for name, spec in specs.items()}


def mamba_ssu_values(part, shape, tied, generator):
    """Floats of one input; tied: the same along a head."""
    head = {"dt": 2, "A": 1, "D": 1, "dt_bias": 1}.get(part)
    drawn = shape[:head] if tied and head else shape
    values = conftest.noise(drawn, torch.float32, "cpu", generator)
    values = values.view(*drawn, *[1] * (len(shape) - len(drawn))).expand(shape)
    if part == "A":
        return -(values + 1.0625)
    values = values * {"dt": 2, "dt_bias": 2, "D": 4, "z": 4}.get(part, 1)
    if part == "dt":
        batch, heads = shape[:2]
        kind = 7 * torch.arange(batch)[:, None] + 3 * torch.arange(heads)
        values[kind % 32 == 5] = -24.0
        values[kind % 32 == 21] = 96.0
    return values


def mamba_ssu_inputs(definition, axes, device="cpu", seed=0):
    """Steps where softplus bends, some of them 0 or large; states in every slot, whether a sequence has it or not; slots
    in no order, every eighth sequence padding. Other libraries take one A, D and step for a head, so that is what
    batches of an even size have; in the others each element has its own, which shows what is transposed."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    parts = mamba_ssu_parts(definition, {name: name for name in specs})
    slots = conftest.shape_of(specs[parts["state"]], sizes)[0]
    batch = conftest.shape_of(specs[parts["x"]], sizes)[0]
    if slots < batch:
        raise conftest.Unavailable(f"{slots} slots do not hold {batch} sequences")
    inputs, pad = {}, axes.get(parts.get("pad"), -1)
    for name, spec in specs.items():
        part = mamba_ssu_part(name, spec)
        if spec["shape"] is None:
            inputs[name] = {"softplus": True, "pad": pad}[part]
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if part == "indices":
            values = torch.randperm(slots, generator=generator)[:batch]
            values[3::8] = pad
        else:
            values = mamba_ssu_values(part, shape, batch % 2 == 0, generator)
        inputs[name] = values.to(dtype).to(device)
    return inputs


def mamba_ssu_edges(definition, axes):
    """No sequence, and one."""
    parts = mamba_ssu_parts(definition, definition["inputs"])
    return [{**axes, parts["x"]["shape"][0]: count} for count in (0, 1)]


def mamba_ssu_tolerance(definition, axes, index):
    """Kernels sum over the state in float32, in another order."""
    sizes = conftest.resolve_axes(definition, axes)
    spec = list(definition["outputs"].values())[index]
    states = conftest.shape_of(definition["inputs"]["B"], sizes)[-1]
    atol = 1e-5 if len(spec["shape"]) == 4 else 2e-6 * states
    return atol, 1e-5 if spec["dtype"] == "float32" else 8e-3, 1.0


def mamba_ssu_tied(value, lead, shape):
    """A view of that shape with one value for each head, which the first `lead` axes count."""
    if value is None:
        return None
    flat = value.reshape(*value.shape[:lead], -1)
    if (flat != flat[..., :1]).any():
        raise NotImplementedError("it takes one A, D and step for a head")
    return flat[..., 0].view(*shape[:lead], *[1] * (len(shape) - lead)).expand(shape)


def mamba_ssu_call(test, inputs, update):
    """FlashInfer's call and SGLang's have the same words."""
    definition = conftest.definition_of(test)
    given = mamba_ssu_parts(definition, inputs)
    x, state, indices = given["x"], given["state"], given.get("indices")
    if len(x) == 0:
        raise NotImplementedError("it takes no empty batch")
    heads = state.shape[1:3]
    steps = [given["dt"], given.get("D"), given.get("dt_bias")]
    if steps[1] is None:
        steps[1] = torch.zeros(heads[0], device=x.device)
    # FlashInfer takes one dtype for the three of them.
    dtypes = {value.dtype for value in steps if value is not None}
    wide = dtypes.pop() if len(dtypes) == 1 else torch.float32
    dt, skip, bias = (None if value is None else value.to(wide) for value in steps)
    pad, output = given.get("pad", -1), torch.zeros_like(x)
    update(
        state,
        x,
        mamba_ssu_tied(dt, 2, x.shape),
        mamba_ssu_tied(given["A"], 1, state.shape[1:]),
        given["B"],
        given["C"],
        D=mamba_ssu_tied(skip, 1, heads),
        z=given.get("z"),
        dt_bias=mamba_ssu_tied(bias, 1, heads),
        dt_softplus=given.get("softplus", True),
        state_batch_indices=indices,
        pad_slot_id=pad,
        out=output,
    )
    if indices is not None:
        output[indices == pad] = 0
    outputs = definition["outputs"].values()
    return tuple(state if len(spec["shape"]) == 4 else output for spec in outputs)


def mamba_ssu_flashinfer(test, inputs):
    module = conftest.need("flashinfer.mamba", conftest.device_of(inputs))
    parts = mamba_ssu_parts(conftest.definition_of(test), inputs)
    dim = parts["state"].shape[2]
    if dim < 64:
        raise NotImplementedError(f"it takes heads of 64 and more, not of {dim}")
    return mamba_ssu_call(test, inputs, module.selective_state_update)


def mamba_ssu_sglang(test, inputs):
    path = "sglang.kernels.ops.mamba.triton_ops.mamba_ssm"
    module = conftest.need(path, conftest.device_of(inputs))
    return mamba_ssu_call(test, inputs, module.selective_state_update)
