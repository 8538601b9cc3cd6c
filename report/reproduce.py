

# ---- The code below is the same in every script. It needs only torch. ----


def reproduce_case():
    """Calls the reference above on the saved inputs, and compares its outputs with the saved ground truth."""
    import inspect
    import json
    import pathlib
    import random
    import sys

    import torch

    dtypes = {
        "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
        "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F4": "float4_e2m1fn_x2", "I64": "int64", "I32": "int32",
        "I16": "int16", "I8": "int8", "U32": "uint32", "U8": "uint8", "BOOL": "bool",
    }
    device = sys.argv[1] if len(sys.argv) > 1 else REFTEST_DEVICE if torch.cuda.is_available() else "cpu"
    data = bytearray(pathlib.Path(__file__).with_name("tensors.safetensors").read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    case = json.loads(header.pop("__metadata__")["case"])

    def tensor(entry):
        begin, end = entry["data_offsets"]
        shape = list(entry["shape"])
        if entry["dtype"] == "F4":
            shape[-1] //= 2
        dtype = getattr(torch, dtypes[entry["dtype"]])
        if begin == end:
            return torch.empty(shape, dtype=dtype, device=device)
        raw = torch.frombuffer(data, dtype=torch.uint8, count=end - begin, offset=start + begin).clone()
        return raw.view(dtype).view(shape).to(device)

    def number(value):
        return float(value) if isinstance(value, str) else value  # "nan" and "inf"

    tensors = {name: tensor(entry) for name, entry in header.items()}
    inputs = {}
    for name in REFTEST_INPUTS:
        inputs[name] = tensors["input." + name] if "input." + name in tensors else number(case["scalars"][name])

    torch.manual_seed(case["seed"])
    random.seed(case["seed"])
    function = globals()[REFTEST_ENTRY_POINT]
    parameters = inspect.signature(function).parameters
    by_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or all(name in parameters for name in inputs)
    arguments = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
    result = function(**arguments) if by_name else function(*arguments.values())

    names = [spec["name"] for spec in case["outputs"]]
    if isinstance(result, dict):
        result = [result[name] for name in names]
    elif not isinstance(result, (tuple, list)):
        result = [result]
    if len(result) != len(names):
        sys.exit("the reference returned %d values, but the definition has %d outputs" % (len(result), len(names)))
    failed = [compare(spec, found, tensors) for spec, found in zip(case["outputs"], result)]
    if case["message"]:
        print("reftest said: %s" % case["message"])
    sys.exit(any(failed))


def compare(spec, found, tensors):
    """Prints how far an output is from the ground truth. Returns whether it fails."""
    import torch

    name = spec["name"]
    if "truth." + name not in tensors:
        print("output '%s': no ground truth was computed" % name)
        return False
    truth, seen = tensors["truth." + name], tensors["reference." + name]
    if not isinstance(found, torch.Tensor):
        found = torch.tensor(found, dtype=truth.dtype, device=truth.device)
    found = found.detach()
    if found.shape != truth.shape or found.dtype != truth.dtype:
        print("output '%s': %s %s, but the definition has %s %s"
              % (name, found.dtype, list(found.shape), truth.dtype, list(truth.shape)))
        return True
    if spec["by_family"] or found.dtype in (getattr(torch, "float4_e2m1fn_x2", None), torch.bool):
        same = torch.equal(found.view(torch.uint8), seen.view(torch.uint8))
        print("output '%s': %s as in reftest's run, where this output %s; this script does not compare its elements"
              % (name, "the same" if same else "not the same", "failed" if spec["failed"] else "passed"))
        return same and spec["failed"]
    r, g = found.double(), truth.double()
    difference = (r - g).abs()
    bound = float(spec["atol"]) + float(spec["rtol"]) * g.abs()
    hit = (r == g) | (difference <= bound)
    missed = (~hit).sum().item()
    broken = (~hit & ~(r.isfinite() & g.isfinite())).any().item()
    fails = broken or hit.numel() - missed < float(spec["hit_ratio"]) * hit.numel()
    print("output '%s': %d of %d elements exceed the bound %g + %g |ground truth|; %s computed the ground truth"
          % (name, missed, hit.numel(), float(spec["atol"]), float(spec["rtol"]), spec["ground_truth"]))
    excess = torch.where(hit, -1.0, (difference / bound).nan_to_num(nan=float("inf"), posinf=float("inf"))).flatten()
    for flat in excess.argsort(descending=True)[: min(missed, 4)].tolist():
        index = [int(i) for i in torch.unravel_index(torch.tensor(flat), found.shape)]
        print("  at %s  reference %.8g  ground truth %.8g" % (index, r.flatten()[flat], g.flatten()[flat]))
    return fails


reproduce_case()
