"""conftest_truths - computes ground truths with reftest's own kernels and with installed libraries. `reftest generate`
appends this file, from its first dashed line on, to conftest.py in this directory, which contains the imports and the
functions that are called here."""

# ruff: noqa: F821


# ---- reftest's own kernels ------------------------------------------------------------------------------------------


class Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Judged(ctypes.Structure):
    _fields_ = (
        ("text", ctypes.c_char_p),
        *((name, ctypes.POINTER(Place)) for name in ("inputs", "outputs", "truth")),
    )


class Kernels:
    """The libraries libreftest_kernels.so and libreftest_kernels_cuda.so. In each call,
    `text` is the case as JSON text (see kernels_case)."""

    OK, NONE, REFUSED = 0, 1, 2

    def __init__(self, folder):
        self.folder = folder
        self.host = ctypes.CDLL(str(folder / "libreftest_kernels.so"))
        if not hasattr(self.host, "reftest_rounding"):
            raise Unavailable(
                f"the kernels in {folder} are from a reftest that is too old for this file"
            )

    @functools.cached_property
    def cuda(self):
        try:
            return ctypes.CDLL(str(self.folder / "libreftest_kernels_cuda.so"))
        except OSError as why:
            raise Unavailable(f"reftest has no CUDA kernels here ({why})") from why

    def call(self, function, *words):
        why = ctypes.create_string_buffer(2048)
        code = function(*words, why, ctypes.c_size_t(len(why)))
        text = why.value.decode("utf-8", "replace")
        if code < 0:
            raise RuntimeError(f"reftest's kernels: {text}")
        return code, text

    def need(self, function, *words):
        code, text = self.call(function, *words)
        if code != self.OK:
            raise Unavailable(text)
        return text

    def rule(self, text, output):
        rule = (ctypes.c_double * 3)()
        self.need(self.host.reftest_bounds, text, output, rule)
        return tuple(rule)

    def fill(self, text, index, tensor):
        """Fills a tensor in host memory with the input values of the case."""
        self.need(self.host.reftest_fill, text, index, place(tensor))

    def scalar(self, text, index):
        value = ctypes.c_double()
        self.need(self.host.reftest_scalar, text, index, ctypes.byref(value))
        return value.value

    def probe(self, text, inputs, outputs):
        """Returns the constants with which a reference computed these outputs. Asserts that such constants exist. All
        tensors are in host memory."""
        code, found = self.call(
            self.host.reftest_probe, text, places(inputs), places(outputs)
        )
        assert code != self.REFUSED, (
            f"no value of a constant explains the reference's outputs: {found}"
        )
        return json.loads(found) if code == self.OK else {}

    def truth(self, text, inputs, outputs, left, device):
        given = [places(group) for group in (inputs, outputs, left)]
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            index = (
                device.index
                if device.index is not None
                else torch.cuda.current_device()
            )
            self.need(self.cuda.reftest_truth_left_cuda, text, index, *given)
        else:
            self.need(self.host.reftest_truth_left, text, *given)

    def judge(self, text, index, inputs, outputs, truth):
        """Judges an output. Returns None if a tolerance rule must be used instead, ""
        if the output is correct, and otherwise a message that says why the output is
        wrong."""
        host = [on_host(group) for group in (inputs, outputs, truth)]
        code, why = self.call(
            self.host.reftest_judge, text, index, *(places(group) for group in host)
        )
        return None if code == self.NONE else why if code == self.REFUSED else ""

    def rounding(self, text, index, outputs, truth):
        """Examines an output that is within its tolerance. Returns "" or a message that says that the output is
        truncated instead of rounded."""
        host = [on_host(group) for group in (outputs, truth)]
        code, why = self.call(
            self.host.reftest_rounding, text, index, *(places(group) for group in host)
        )
        return why if code == self.REFUSED else ""

    def judge_both(self, sets, index):
        """Judges an output on both sets of input values together. Each set is (text, inputs, outputs, truth), with
        tensors in host memory. Returns a message that says why the output is wrong, or ""."""
        judged = (Judged * 2)(
            *(
                Judged(text, *(places(group) for group in groups))
                for text, *groups in sets
            )
        )
        code, why = self.call(self.host.reftest_judge_both, judged, index)
        return why if code == self.REFUSED else ""


def on_host(tensors):
    return [tensor.cpu() if tensor is not None else None for tensor in tensors]


def place(tensor):
    if tensor is None:
        return Place(None, 0)
    return Place(tensor.data_ptr() or None, tensor.numel() * tensor.element_size())


def places(tensors):
    return (Place * max(len(tensors), 1))(*(place(tensor) for tensor in tensors))


@functools.lru_cache(maxsize=1)
def _find_kernels():
    program = shutil.which("reftest")
    beside = (
        [
            Path(program).resolve().parent,
            Path(program).resolve().parent.parent / "lib/reftest",
        ]
        if program
        else []
    )
    named = os.environ.get("REFTEST_KERNELS")
    for folder in [Path(named)] if named else [*beside, Path("/usr/local/lib/reftest")]:
        if (folder / "libreftest_kernels.so").is_file():
            try:
                return Kernels(folder)
            except OSError as why:
                return f"reftest's kernels failed to load ({why})"
    where = (
        f"$REFTEST_KERNELS is {named}, which contains no kernels"
        if named
        else "reftest is not installed"
    )
    return f"reftest's kernels are not available ({where})"


def kernels():
    found = _find_kernels()
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def kernels_case(test, case, inputs, seed=0):
    """Writes a case as JSON text for reftest's kernels. The text includes the Python
    scalars, and the constants of the reference for which the definition gives no
    value."""
    definition = definition_of(test)
    known = {} if case.kind == "probe" else constants_of(test)
    scalars = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
    constants = {
        name: float(known[name])
        for name, value in test.CONSTANTS.items()
        if value is None and known.get(name) is not None
    }
    known_axes = {
        name: {"type": "var"}
        if length_of(axis) is None
        else {"type": "const", "value": length_of(axis)}
        for name, axis in definition["axes"].items()
    }
    text = {
        "definition": {key: definition[key] for key in definition if key != "reference"}
        | {"axes": known_axes},
        "axes": dict(case.axes),
        "scalars": scalars,
        "constants": constants,
        "seed": seed,
        "contents": int(case.second),
        "given": list(case.inputs),
        "absent": list(case.omitted),
        "probe": case.kind == "probe",
    }
    if case.kind == "edge":
        text["edge"] = case.label
    return json.dumps(text).encode("utf-8")


def kernels_inputs(test, case, device, scalars, seed=0):
    """Generates the inputs as `reftest verify` does, but with the Python scalars in `scalars`."""
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    text = kernels_case(test, case, scalars, seed)
    inputs = {}
    for index, (name, spec) in enumerate(definition["inputs"].items()):
        if name in case.omitted:
            inputs[name] = None
        elif spec["shape"] is not None:
            host = torch.empty(shape_of(spec, sizes), dtype=dtype_of(spec))
            kernels().fill(text, index, host)
            inputs[name] = host.to(device)
        elif name in scalars:
            inputs[name] = scalars[name]
        else:
            kind = {"b": bool, "i": int, "u": int}.get(spec["dtype"][0], float)
            kind = float if spec["dtype"] == "bfloat16" else kind
            inputs[name] = kind(kernels().scalar(text, index))
    return inputs


# ---- hidden constants -----------------------------------------------------------------------------------------------


@functools.cache
def _constants(test):
    found = dict(test.CONSTANTS)
    if None in found.values() and test.PROBE is not None:
        with contextlib.suppress(Unavailable):
            found |= recovered_constants(test)
    return found


def recovered_constants(test):
    """Finds the constants that the definition does not give. Calls the reference on inputs for which the outputs reveal
    these constants."""
    host = torch.device("cpu")
    inputs = kernels_inputs(test, test.PROBE, host, {})
    outputs = contiguous(run_reference(test, inputs))
    return kernels().probe(
        kernels_case(test, test.PROBE, inputs),
        in_order(definition_of(test), inputs),
        outputs,
    )


def constants_of(test):
    """Returns the constants of the reference, from the definition or else from the
    reference's outputs. If neither gives a constant, its value is None."""
    return _constants(class_of(test))


# ---- ground truth ---------------------------------------------------------------------------------------------------


# The results of a ground truth. `coarse` is None if the ground truth computes as exactly
# as the definition says; otherwise it contains atol and rtol for each output.
Truth = collections.namedtuple("Truth", "name outputs coarse")


@functools.cache
def tables():
    """Loads the tables of library calls and returns {name of the ground truth: table} in order of preference."""
    path = LIBRARIES / "common.py"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `reftest generate` restores it")
    # Loads common.py under the name by which the tables import it. This code does the
    # same as the function `load` in common.py, which loads the tables.
    common = sys.modules["reftest_providers"] = types.ModuleType("reftest_providers")
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    types.FunctionType(code, common.__dict__)()
    broken = {}
    found = common.load_tables(str(LIBRARIES), broken)
    for problem in broken.values():
        raise problem
    return found


def ground_truths(family):
    """Returns the pytest parameters for the ground truths of an op family: their names in order of preference."""
    found = [table.name for table in tables().values() if family in table.rows]
    return [*found, "builtin"]


def need(module):
    """Imports a module of a library. Raises Unavailable with the reason if that fails."""
    try:
        return importlib.import_module(module)
    except Exception as why:  # the import of compiled code may raise any exception
        raise Unavailable(
            f"cannot import {module} ({type(why).__name__}: {why})"
        ) from why


@functools.cache
def lacking_version(name):
    return sys.modules["reftest_providers"].version_of(tables()[name])[1]


def device_class(device):
    if device.type != "cuda":
        return device.type
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def request_of(test, case, inputs):
    """Returns the request for a library. The request is a message {"provide"}
    (python/provider.py of reftest) with only the fields that
    reftest_libraries/common.py reads."""
    definition, sizes = (
        definition_of(test),
        resolve_axes(definition_of(test), case.axes),
    )
    return {
        "family": test.FAMILY,
        "name": test.NAME,
        "class": device_class(device_of(inputs)),
        "axes": sizes,
        "constants": {
            name: value
            for name, value in constants_of(test).items()
            if value is not None
        },
        "roles": dict(test.ROLES),
        "output_roles": dict(test.OUTPUT_ROLES),
        "modes": list(test.MODES),
        "outputs": [
            {
                "name": name,
                "dtype": spec["dtype"],
                "shape": list(shape_of(spec, sizes)),
                "scalar": spec["shape"] is None,
            }
            for name, spec in definition["outputs"].items()
        ],
    }


def with_defaults(test, case, inputs):
    """Returns the inputs for a library. If a Python scalar has the number that stands for "use the default", replaces
    it by the default, because libraries do not know this number."""
    names = [
        name for name, number in test.DEFAULT_NUMBERS.items() if inputs[name] == number
    ]
    if not names:
        return inputs
    text, order = kernels_case(test, case, inputs), list(definition_of(test)["inputs"])
    kind = {name: type(inputs[name]) for name in names}
    return inputs | {
        name: kind[name](kernels().scalar(text, order.index(name))) for name in names
    }


def library_truth(test, case, inputs, table):
    """Computes a ground truth with a library. Raises Unavailable if the library cannot compute it."""
    common, row = sys.modules["reftest_providers"], table.rows.get(test.FAMILY)
    inputs = with_defaults(test, case, inputs)
    if row is None:
        raise Unavailable("it does not support this operation")
    device = device_of(inputs)
    why = common.lacking(row, device_class(device)) or lacking_version(table.name)
    if why is not None:
        raise Unavailable(why)
    for wanted in table.needs:
        if wanted.module is not None:
            need(wanted.module)
    getattr(table.module, "on_import", lambda: None)()
    call = common.Call(
        torch, request_of(test, case, inputs), copies(inputs), str(device)
    )
    seed_everything(0)
    with torch.no_grad():
        results = row.call(call)
    outputs = as_outputs(definition_of(test), results, table.name)
    coarse = common.coarse_of(row, call, outputs)
    return Truth(
        table.name, outputs, coarse and [(x["atol"], x["rtol"]) for x in coarse]
    )


def ground_truth(test, case, inputs, name):
    """Computes the ground truth `name`. Raises Unavailable if it cannot be computed."""
    if name == "builtin":
        return Truth(name, builtin_truth(test, case, inputs)[0], None)
    if name not in tables():
        raise Unavailable("it does not support this operation")
    try:
        return library_truth(test, case, inputs, tables()[name])
    except Exception as why:
        if refusal(why) is None:
            raise
        raise Unavailable(refusal(why)) from why


def refusal(why):
    """Returns the exception's message if the library lacks a function, a module, a compiler, or a kernel for this
    device or shape. Returns None if the library failed for another reason."""
    module = isinstance(why, AttributeError) and str(why).startswith("module '")
    refused = sys.modules["reftest_providers"].Unavailable, NotImplementedError
    if isinstance(why, (*refused, ImportError)) or module:
        return str(why)
    words = (
        "not supported|unsupported|not implemented|no kernel image"
        "|compute capability|static assertion|could not find nvcc"
    )
    library = isinstance(why, (RuntimeError, ValueError))
    found = library and re.search(f".*({words}).*", str(why), re.IGNORECASE)
    return found[0].strip()[:300] if found else None


def device_of(inputs):
    return next(
        (value.device for value in inputs.values() if isinstance(value, torch.Tensor)),
        torch.device("cpu"),
    )


def in_order(definition, inputs):
    """Returns the input tensors in the definition's order, with None for Python scalars and for inputs that are left
    out."""
    values = [inputs[name] for name in definition["inputs"]]
    return [
        value.contiguous() if isinstance(value, torch.Tensor) else None
        for value in values
    ]


def builtin_truth(test, case, inputs, left=()):
    """Computes the ground truth "builtin" with reftest's kernels. Returns the outputs, and the values that the inputs
    in `left` must have after the call. `left` lists the inputs whose new values are not also
    outputs."""
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    device = device_of(inputs)
    outputs = [
        torch.empty(shape_of(spec, sizes), dtype=dtype_of(spec), device=device)
        for spec in definition["outputs"].values()
    ]
    own = {name: torch.empty_like(inputs[name].contiguous()) for name in left}
    kernels().truth(
        kernels_case(test, case, inputs),
        in_order(definition, inputs),
        outputs,
        [own.get(name) for name in definition["inputs"]],
        device,
    )
    return outputs, own


def rule_of(test, case, inputs, index):
    """Returns atol, rtol and hit ratio of `reftest verify` for an output. reftest's kernels compute them for these
    inputs. Without reftest's kernels, returns the tolerance rule of the test class for
    the size that the case has. If the case is not one of the sizes, returns the widest
    rule of all sizes."""
    try:
        return kernels().rule(kernels_case(test, case, inputs), index)
    except Unavailable:
        rules = test.RULES
        rows = rules[index] if rules else ()
    if not rows:
        raise Unavailable(f"the bounds of {test.NAME} are unknown")
    place = place_of(test, case)
    return rows[place] if len(rows) > 1 and place is not None else widest(*rows)


def widest(*rules):
    return (
        max(rule[0] for rule in rules),
        max(rule[1] for rule in rules),
        min(rule[2] for rule in rules),
    )


def tolerance(test, case, inputs, index, truth):
    """Returns atol, rtol and hit ratio of an output, as in `reftest verify`. If the
    ground truth computes less exactly than the definition says, atol and rtol are at
    least those in truth.coarse."""
    spec = list(definition_of(test)["outputs"].values())[index]
    rule = asked_rule(test, spec["dtype"], rule_of(test, case, inputs, index))
    if truth.coarse is None:
        return rule
    atol, rtol = truth.coarse[index]
    return max(rule[0], atol), max(rule[1], rtol), rule[2]


def first_truth(test, case, inputs):
    """Returns the first ground truth that can be computed. If no ground truth can be computed, skips the test and gives
    all reasons."""
    reasons = []
    for name in ground_truths(test.FAMILY):
        try:
            return ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    pytest.skip("no ground truth: " + "; ".join(reasons))
