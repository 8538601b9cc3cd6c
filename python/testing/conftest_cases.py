"""conftest_cases - the cases of a test class (sizes, workloads, edge cases) and their inputs. `reftest generate` appends
this file, from its first dashed line on, to conftest.py, which contains the imports. The functions that are called here
are in the other parts of conftest.py."""

# ruff: noqa: F821


# ---- cases ----------------------------------------------------------------------------------------------------------


class Case:
    """The values of the axes and, for a case from a workload, the workload's inputs."""

    def __init__(
        self, label, axes, inputs=None, problem=None, second=False, kind=None, **repeat
    ):
        self.label = label
        self.axes = axes
        self.inputs = inputs or {}
        self.omitted = repeat.get("omitted", ())  # the optional inputs that are None
        # {Python scalar: the number that is passed and stands for "use the default"}
        self.numbers = repeat.get("numbers", {})
        self.second = second  # if True, the inputs have the second set of values
        self.problem = problem  # why the case is invalid, or None; the test of an invalid case fails with this message
        self.kind = kind  # "edge" or "probe" if reftest's kernels generate the inputs

    def __repr__(self):
        """Returns the case's id in `reftest verify`."""
        axes = ",".join(f"{name}={value}" for name, value in self.axes.items())
        without = [f":without={name}" for name in self.omitted]
        given = [f":{name}={number:g}" for name, number in self.numbers.items()]
        return "".join([f"{self.label}:{axes}", *without, *given])

    @property
    def repeats(self):
        """Does this case repeat the last small size, either without an optional input,
        or with a number that means "use the default" for a Python scalar?"""
        return bool(self.omitted or self.numbers)

    def second_set(self):
        """Returns the same case with the second set of input values."""
        return Case(
            self.label,
            self.axes,
            self.inputs,
            self.problem,
            True,
            self.kind,
            omitted=self.omitted,
            numbers=self.numbers,
        )


def size(label, /, **axes):
    return Case(label, axes)


def edge(label, /, **axes):
    """Returns an edge case of `reftest verify --edge`."""
    return Case(label, axes, kind="edge")


def probe(label, /, **axes):
    """Returns a case whose outputs reveal constants that the reference uses, but the
    definition does not give."""
    return Case(label, axes, kind="probe")


def constants(**values):
    """Returns a read-only mapping from names to values, for use in a test class."""
    return types.MappingProxyType(values)


def rules(*outputs):
    """Returns the tolerance rules (atol, rtol, hit ratio) that `reftest verify` uses
    for the outputs. Each argument contains the rules of one output: a single rule, or
    one rule for each size in SIZES. An argument is None if no tolerance rule fits the
    output; then reftest's kernels judge the output."""
    return tuple(rows and tuple(rows) for rows in outputs)


def workloads(op_type, name):
    """Returns (name, case) for each line of the workload file, except for lines whose blob file is missing."""
    path = ROOT / "workloads" / op_type / f"{name}.jsonl"
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            uuid, case = workload_of(line, load_definition(op_type, name))
        except (
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as why:
            uuid, case = None, Case("workload", {}, problem=f"{path}:{number}: {why!r}")
        if case is not None:
            found.append((uuid or f"line {number}", case))
    return found


def workload_of(line, definition):
    """Returns the name and the case of a line in a workload file. The case is None if a blob file is missing."""
    line = json.loads(line)
    workload = line.get("workload", line)
    given = workload["inputs"].items()
    omitted = tuple(name for name, value in given if value is None)
    inputs = {
        name: value
        for name, value in given
        if value is not None and value["type"] != "random"
    }
    blobs = [v["path"] for v in inputs.values() if v["type"] == "safetensors"]
    if not all(is_blob(ROOT / blob) for blob in blobs):
        return None, None
    fixed = computed_axes(definition, {})
    found = computed_axes(definition, workload["axes"])
    axes = {name: found[name] for name in found if name not in fixed}
    case = Case("workload", axes, inputs, omitted=omitted)
    return workload.get("uuid"), case


def is_blob(path):
    """Does the blob file exist, with its contents and not only a Git LFS pointer?"""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return not file.read(20).startswith(b"version https://git-")


def cases(op_type, name, sizes):
    """Returns the pytest parameters for all cases: the sizes (large sizes are marked slow) and the workloads."""
    found = [
        pytest.param(
            case,
            id=repr(case),
            marks=[pytest.mark.slow] if case.label == "large" else [],
        )
        for case in sizes
    ]
    return found + [
        pytest.param(case, id=f"workload:{uuid}")
        for uuid, case in workloads(op_type, name)
    ]


def default_sizes(test):
    """Returns the sizes of a class, and variants of its last small size. For each
    optional input in OMITTED, a variant leaves out this input. For each Python scalar in
    DEFAULT_NUMBERS, a variant passes the number that means "use the default"."""
    small = [case for case in test.SIZES if case.label == "small"][-1:]
    repeats = [
        Case(case.label, case.axes, omitted=(name,))
        for case in small
        for name in test.OMITTED
    ] + [
        Case(case.label, case.axes, numbers={name: number})
        for case in small
        for name, number in test.DEFAULT_NUMBERS.items()
    ]
    return [*test.SIZES, *repeats]


def some_cases(sizes):
    """Returns the pytest parameters for two cases: the last small and the last medium size."""
    last = {case.label: case for case in sizes if case.label != "large"}
    return [pytest.param(case, id=repr(case)) for case in last.values()]


def all_edges(sizes, edges):
    """Returns the pytest parameters for edge cases: those of the op family and, if there is a single variable axis, the
    lengths 0 and 1 of this axis."""
    found = [*edges]
    if sizes and len(sizes[0].axes) == 1:
        found += [
            Case("edge", {axis: value}) for axis in sizes[0].axes for value in (0, 1)
        ]
    if not found:
        skip = pytest.mark.skip(
            reason="it is unknown which axes of this definition may be 0"
        )
        return [pytest.param(None, id="none", marks=skip)]
    return [pytest.param(case, id=repr(case)) for case in found]


# Maps the name of an element type in a safetensors file to its name in torch.
SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn_x2",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U32": "uint32",
    "U8": "uint8",
    "BOOL": "bool",
}


def read_safetensors(path, key):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(length))[key]
        begin, end = entry["data_offsets"]
        file.seek(8 + length + begin)
        data = bytearray(file.read(end - begin))
    flat = (
        torch.frombuffer(data, dtype=torch.uint8)
        if data
        else torch.empty(0, dtype=torch.uint8)
    )
    shape = entry["shape"]
    if entry["dtype"] == "F4":  # in torch, one element holds two 4-bit elements
        shape = [*shape[:-1], shape[-1] // 2]
    dtype = getattr(torch, SAFETENSORS_DTYPES[entry["dtype"]])
    return flat.view(dtype).reshape(shape)


def elements_of(definition, axes):
    axes = resolve_axes(definition, axes)
    specs = list(definition["inputs"].values()) + list(definition["outputs"].values())
    return sum(
        math.prod(shape_of(spec, axes)) for spec in specs if spec["shape"] is not None
    )


def check_room(definition, axes, device, label):
    """Skips a case that needs more memory than this machine has, with a message that says how much it needs. The sizes
    of a case are never reduced."""
    elements = elements_of(definition, axes)
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if 16 * elements > host:
        pytest.skip(
            f"{elements} elements need about {16 * elements >> 20} MiB of memory, but the machine has {host >> 20} MiB"
        )
    if (
        device.type == "cpu"
        and label in ("large", "workload")
        and elements > CPU_ELEMENTS
    ):
        pytest.skip(f"{elements} elements exceed the limit for a CPU")
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if 24 * elements > free:
            pytest.skip(
                f"{elements} elements need about {24 * elements >> 20} MiB, but only {free >> 20} MiB are free on the GPU"
            )


def make_inputs(test, case, device):
    """Returns the inputs of a case: those that its workload gives, and generated values
    for the others. The generated values may depend on the workload's Python scalars,
    such as the number that marks padding."""
    assert case.problem is None, case.problem
    definition = definition_of(test)
    if any(given["type"] == "custom" for given in case.inputs.values()) or (
        test.FAMILY is None and not case.inputs and own_code_makes_inputs(definition)
    ):
        pytest.skip(
            "the definition's own code makes the inputs, and only `reftest verify` runs this code"
        )
    check_room(definition, case.axes, device, case.label)
    try:
        inputs = generated_inputs(test, case, device)
    except Unavailable as why:
        pytest.skip(f"inputs: {why}")
    for name, given in case.inputs.items():
        if given["type"] == "safetensors":
            inputs[name] = read_safetensors(
                ROOT / given["path"], given["tensor_key"]
            ).to(device)
        elif isinstance(inputs.get(name), torch.Tensor):
            inputs[name] = torch.full_like(inputs[name], given["value"])
        else:
            inputs[name] = given["value"]
    return inputs


def own_code_makes_inputs(definition):
    return bool(definition.get("init") or definition.get("custom_inputs_entrypoint"))


def generated_inputs(test, case, device):
    """Generates the inputs of a case. The inputs of a size depend only on the axes and scalars, so the class's
    generate_random_inputs generates them. The inputs of other cases also depend on the kind of the case or on its
    workload."""
    scalars = scalars_of(test, case)
    if case.kind is not None:
        return kernels_inputs(test, case, device, scalars)
    if case.inputs or case.repeats:
        with contextlib.suppress(Unavailable):
            return kernels_inputs(test, case, device, scalars)
    axes = {**case.axes, **scalars}
    seed = int(case.second)
    inputs = test.generate_random_inputs(axes, device=device, seed=seed)
    return inputs | dict.fromkeys(case.omitted)


def scalars_of(test, case):
    """Returns the Python scalars of a case. For a case that is one of the sizes,
    returns the values that `reftest verify` uses for this size; for any other case,
    returns the values in the workload."""
    specs, place = definition_of(test)["inputs"], place_of(test, case)
    if place is not None and not case.second:
        return {
            name: rows[place if len(rows) > 1 else 0]
            for name, rows in test.SCALARS.items()
        }
    given = {
        name: given["value"]
        for name, given in case.inputs.items()
        if given["type"] == "scalar" and specs[name]["shape"] is None
    }
    return given | case.numbers


def place_of(test, case):
    """Returns the index of the size whose axes have the same values as this case, or None if there is none."""
    if case.kind is not None or case.inputs or case.repeats:
        return None
    axes = [size.axes for size in test.SIZES]
    return axes.index(case.axes) if case.axes in axes else None


def make_second_inputs(test, case, device):
    """Returns a pair: the same case with the second set of input values, and the inputs
    with these values."""
    second = case.second_set()
    return second, make_inputs(test, second, device)


def random_inputs(test, axes, device, seed=0):
    """Generates inputs for these axis values: the inputs of `reftest verify` if reftest's kernels are installed, else
    plain inputs. Seeds 0 and 1 give the two sets of input values of a case. `axes` may also contain values of Python
    scalars."""
    definition = definition_of(test)
    scalars = {name: x for name, x in axes.items() if name in definition["inputs"]}
    axes = {name: x for name, x in axes.items() if name in definition["axes"]}
    case = Case("random", axes, second=seed % 2 == 1)
    try:
        return kernels_inputs(test, case, device, scalars, seed // 2)
    except Unavailable as why:
        return Plain(test, case, scalars, seed, why).inputs(device)
