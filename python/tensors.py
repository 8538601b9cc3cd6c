"""tensors - functions for the arguments and outputs of a reference. They convert an argument to another form, put
outputs in the order of the definition, and read the memory address, shape and dtype of a tensor. This module needs
torch."""

import torch
from reftest_failures import Lacking, Mistake, WrongCount

NAMES = ("float32 float16 bfloat16 float64 float8_e4m3fn float8_e5m2 float8_e8m0fnu "
         "int64 int32 int16 int8 uint8 uint32 bool").split()
# maps a definition's dtype names to torch.dtype; contains only dtypes that this torch has
DTYPES = {name: getattr(torch, name) for name in NAMES if hasattr(torch, name)}
DTYPES["float4_e2m1"] = getattr(torch, "float4_e2m1fn_x2", torch.uint8)


def dtype_of(name):
    if name not in DTYPES:
        raise Lacking("torch %s has no dtype %s" % (torch.__version__, name))
    return DTYPES[name]


def as_float64(value):
    """Returns a float tensor in float64, and any other value unchanged."""
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def as_nudged(value):
    """Returns a float tensor in float64, with each element multiplied by 1 + eps/2 or 1 - eps/2, where eps is the
    machine epsilon of the tensor's dtype. Returns any other value unchanged."""
    wide = as_float64(value)
    if wide is value and not (isinstance(value, torch.Tensor) and value.dtype == torch.float64):
        return value
    up = torch.arange(value.numel(), device=value.device).mul_(2654435761).bitwise_right_shift_(16).bitwise_and_(1)
    return wide * (1 + (up.double() - 0.5).reshape(value.shape) * torch.finfo(value.dtype).eps)


def as_cpu(value):
    """Returns a copy of a tensor on the CPU, and any other value unchanged."""
    return value.cpu() if isinstance(value, torch.Tensor) else value


def as_strided(value):
    """Returns a non-contiguous copy of a tensor, which uses every second element of its memory. Returns empty and 0-D
    tensors, and all other values, unchanged."""
    if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.numel() == 0:
        return value
    memory = torch.empty([*value.shape, 2], dtype=value.dtype, device=value.device)
    memory.view(torch.uint8).zero_()
    view = memory[..., 0]
    view.copy_(value)
    return view


def tuples_apart(values, known):
    """Returns a copy of `values` in which the elements of each tuple or list of tensors replace the tuple; the elements
    of the tuple NAME are called "NAME[0]" and so on. A tuple whose name is in `known` is not replaced."""
    apart = {}
    for name, value in values.items():
        if name not in known and isinstance(value, (tuple, list)) and value and all(isinstance(v, torch.Tensor) for v in value):
            apart.update(("%s[%d]" % (name, i), element) for i, element in enumerate(value))
        else:
            apart[name] = value
    return apart


def fits(spec, value):
    """Can this be the value of the input `spec`? A tensor must have the dtype of the input, the same number of axes,
    and the same length on each axis whose length is known."""
    if isinstance(value, torch.Tensor) and not spec["scalar"]:
        shape, dtype = form_of(value)
        return (dtype == spec["dtype"] and len(shape) == len(spec["shape"]) and
                all(wanted in (None, size) for wanted, size in zip(spec["shape"], shape)))
    if isinstance(value, torch.Tensor):
        value = value.item() if value.dim() == 0 else None
    kinds = ((float, int) if spec["dtype"].startswith(("float", "bfloat")) else (bool,) if spec["dtype"] == "bool" else (int, bool))
    return spec["scalar"] and type(value) in kinds


def is_part(name, of):
    """Is `name` the beginning or the end of `of`, in whole words? Words are separated by underscores."""
    return of.startswith(name + "_") or of.endswith("_" + name)


def taken_instead(specs, values, missing):
    """Returns {input: [name, why]} for the inputs in `missing` that the code returned under another name: `name` is
    this other name, and `why` is the reason why its value is taken for the input. `values` contains, by name, the
    returned values whose names are not names of inputs. The reasons, which are tried in this order:
    - "name": one of the two names is a part of the other, and the value has the input's form (dtype and shape). This
      reason is not used if it holds for several values and the same input, or for several inputs and the same value.
    - "form": among the tensors that are not yet assigned to an input, only one has the input's form, and no other
      missing input has this form.
    - "order": several missing inputs have the same form, and equally many tensors of this form are not yet assigned.
      The first of these inputs gets the first of these tensors, and so on."""
    wanted = [spec for spec in specs if spec["name"] in missing]
    related = {spec["name"]: [name for name, value in values.items()
                              if (is_part(name, spec["name"]) or is_part(spec["name"], name)) and fits(spec, value)] for spec in wanted}
    every = [name for names in related.values() for name in names]
    taken = {name: [found[0], "name"] for name, found in related.items() if len(found) == 1 and every.count(found[0]) == 1}
    left = [name for name in values if name not in [found for found, _ in taken.values()]]
    fitting = {spec["name"]: [name for name in left if fits(spec, values[name])]
               for spec in wanted if spec["name"] not in taken and not spec["scalar"]}
    for names in {tuple(names) for names in fitting.values() if names}:
        alike = [name for name, found in fitting.items() if tuple(found) == names]
        others = [name for name, found in fitting.items() if name not in alike and set(found) & set(names)]
        if len(alike) == len(names) and not others:
            taken.update((name, [found, "form" if len(names) == 1 else "order"]) for name, found in zip(alike, names))
    return taken


def version_of(value):
    """Returns how many writes to a tensor torch has counted, or None if torch does not count writes to this value."""
    try:
        return value._version
    except (AttributeError, RuntimeError):
        return None


def memory_of(value):
    """Returns the address of a tensor's memory, or None if the tensor is empty or the value is not a tensor."""
    try:
        return value.untyped_storage().data_ptr() or None  # an empty storage has the address 0
    except (AttributeError, RuntimeError, NotImplementedError):
        return None


def bytes_of(value):
    try:
        return value.untyped_storage().nbytes()
    except (AttributeError, RuntimeError, NotImplementedError):
        return 0


def unpack(result, specs, arguments=None):
    """Returns the outputs in the order of the definition. Outputs in a dict are looked up by name, and outputs in a
    tuple or list by position. If the function returned None, and each output has the name of an input that is a tensor,
    returns these inputs, because the function may have written its results to them."""
    names = [spec["name"] for spec in specs]
    if result is None and arguments and all(isinstance(arguments.get(name), torch.Tensor) for name in names):
        return [arguments[name] for name in names]
    if isinstance(result, dict):
        if sorted(map(str, result)) != sorted(names):
            raise WrongCount("the function returned a dict with the keys (%s), but the definition declares the "
                             "outputs (%s)"
                          % (", ".join(map(str, result))[:200], ", ".join(names)))
        return [result[name] for name in names]
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(names):
        raise WrongCount("the function returned %d %s, but the definition declares %d (%s)"
                      % (len(results), "output" if len(results) == 1 else "outputs", len(names), ", ".join(names)))
    return results


def form_of(tensor):
    """Returns the shape and the name of the dtype of a tensor, as definitions write them."""
    shape, dtype = list(tensor.shape), str(tensor.dtype).rpartition(".")[2]
    if dtype == "float4_e2m1fn_x2":
        dtype = "float4_e2m1"
        shape[-1:] = [size * 2 for size in shape[-1:]]
    return shape, dtype


def as_tensor(spec, result, device):
    if isinstance(result, torch.Tensor):
        if not spec["scalar"] and result.device.type != torch.device(device).type:
            raise Mistake("the function returned output '%s' on %s, but its inputs are on %s" % (spec["name"], result.device, device))
        return result.detach()
    if spec["scalar"] and type(result) in (bool, int, float):
        declared = dtype_of(spec["dtype"])
        kind = bool if declared is torch.bool else float if declared.is_floating_point else int
        return torch.tensor(result, dtype=declared if type(result) is kind else None)
    kind = "None" if result is None else "a value of type %s" % type(result).__name__
    raise Mistake("the function returned %s for output '%s', which must be a tensor" % (kind, spec["name"]))
