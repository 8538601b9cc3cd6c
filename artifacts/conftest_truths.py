"""The second part of the generated conftest.py, from its first rule of dashes on: reftest's own kernels, and ground truth by
whichever library is here. Imports and what it calls stand in the first, conftest.py beside this."""

# ruff: noqa: F821


# ---- reftest's own kernels ------------------------------------------------------------------------------------------


class Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("bytes", ctypes.c_int64))


class Kernels:
    """libreftest_kernels.so, and beside it the CUDA one. Every call takes the case as a JSON text."""

    OK, NONE, REFUSED = 0, 1, 2

    def __init__(self, folder):
        self.folder = folder
        self.host = ctypes.CDLL(str(folder / "libreftest_kernels.so"))
        if not hasattr(self.host, "reftest_bounds"):
            raise Unavailable(
                f"{folder} has kernels of a reftest that is too old for this file"
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
        code, why = self.call(function, *words)
        if code != self.OK:
            raise Unavailable(why)

    def rule(self, text, output):
        rule = (ctypes.c_double * 3)()
        self.need(self.host.reftest_bounds, text, output, rule)
        return tuple(rule)

    def fill(self, text, index, tensor):
        """Into a tensor on the host."""
        self.need(self.host.reftest_fill, text, index, place(tensor))

    def scalar(self, text, index):
        value = ctypes.c_double()
        self.need(self.host.reftest_scalar, text, index, ctypes.byref(value))
        return value.value

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
        """None: the element rule is to decide; "": the output is right; else what is wrong."""
        host = [
            [value.cpu() if value is not None else None for value in group]
            for group in (inputs, outputs, truth)
        ]
        code, why = self.call(
            self.host.reftest_judge, text, index, *(places(group) for group in host)
        )
        return None if code == self.NONE else why if code == self.REFUSED else ""


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
                return f"reftest's kernels cannot be loaded ({why})"
    where = (
        f"$REFTEST_KERNELS is {named}, and has none"
        if named
        else "reftest is not installed"
    )
    return f"reftest's kernels are not here ({where})"


def kernels():
    found = _find_kernels()
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def kernels_case(test, case, inputs):
    """The JSON text that reftest's kernels take. Python scalars, and constants that nothing attests, are told by value."""
    definition, known = definition_of(test), constants_of(test)
    scalars = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
    constants = {
        name: float(known[name])
        for name, value in test.CONSTANTS.items()
        if value is None and known[name] is not None
    }
    text = {
        "definition": {
            key: definition[key] for key in definition if key != "reference"
        },
        "axes": dict(case.axes),
        "scalars": scalars,
        "constants": constants,
        "seed": 0,
        "contents": int(case.second),
    }
    return json.dumps(text).encode("utf-8")


def kernels_input(test, case, index, name, like):
    """An input as `reftest verify` makes it; `like`: another of its shape, or of its type."""
    text = kernels_case(test, case, {})
    if not isinstance(like, torch.Tensor):
        return like if like is None else type(like)(kernels().scalar(text, index))
    host = torch.empty(like.shape, dtype=like.dtype)
    kernels().fill(text, index, host)
    return host.to(like.device)


def generic_inputs(definition, axes, device, seed=0):
    """For an operation that no family of reftest knows: noise, if it takes floats alone."""
    specs = definition["inputs"].items()
    names = [name for name, spec in specs if "float" not in spec["dtype"]]
    if names:
        raise Unavailable(f"what integers '{names[0]}' may hold, nothing says")
    generator, sizes = generator_of(seed), resolve_axes(definition, axes)
    return {
        name: 1.0
        if spec["shape"] is None
        else noise(shape_of(spec, sizes), dtype_of(spec), device, generator)
        for name, spec in specs
    }


# ---- ground truth ---------------------------------------------------------------------------------------------------


def need(module, device=None):
    """A module of another library, or Unavailable with the reason. With a device: one that wants a GPU."""
    if device is not None and device.type != "cuda":
        raise Unavailable(f"{module.partition('.')[0]} needs a CUDA GPU")
    try:
        return importlib.import_module(module)
    except (
        Exception
    ) as why:  # what an import of compiled code raises is anybody's guess
        raise Unavailable(
            f"{module} cannot be imported ({type(why).__name__}: {why})"
        ) from why


def need_capability(device, major, minor=0):
    """The major number of the GPU's compute capability, or Unavailable if it is below."""
    found = torch.cuda.get_device_capability(device)
    if found < (major, minor):
        raise Unavailable(
            f"it needs compute capability {major}.{minor}, this GPU has {found[0]}.{found[1]}"
        )
    return found[0]


@functools.cache
def _constants(test):
    probe = getattr(test, "PROBE", None)
    found = probe(test) if probe else {}
    return {
        name: found.get(name) if value is None else value
        for name, value in test.CONSTANTS.items()
    }


def constants_of(test):
    """What no input says: as attested, else as the family's probe recovers it from the reference's answers, else None."""
    return _constants(test if isinstance(test, type) else type(test))


def need_constant(test, name):
    value = constants_of(test).get(name)
    if value is None:
        raise Unavailable(f"nothing attests the constant '{name}' of {test.NAME}")
    return value


def round_constant(estimate):
    """What was meant by an estimate that is good to 2 %: a round number (1, 2 … 9 times a power of ten), or a dtype's
    epsilon, which torch takes when it is given none; else what was found. An answer that no constant gives is wrong."""
    assert estimate > 0 and math.isfinite(estimate), (
        f"the reference answers its probe as no constant would make it: {estimate}"
    )
    meant = [float(f"{estimate:.0e}")]
    meant += [torch.finfo(dtype).eps for dtype in (torch.float32, torch.bfloat16)]
    near = (x for x in meant if abs(estimate - x) <= 0.02 * x)
    return next(near, estimate)


def attend(q, k, v, scale, causal):
    """One sequence through torch's scaled_dot_product_attention, in float64: q [n, heads, D], k and v [m, heads that
    share them, …]; causal: the last query sees all keys. The output, and its log-sum-exp to base 2 [n, heads]."""
    n, m, shared = len(q), len(k), q.shape[1] // max(k.shape[1], 1)
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = k.repeat_interleave(shared, 0), v.repeat_interleave(shared, 0)
    seen = torch.ones(n, m, dtype=torch.bool, device=q.device)
    seen = seen.tril(m - n) if causal else seen
    output = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen, scale=scale
    )
    logits = (q @ k.mT * scale).masked_fill(~seen, -torch.inf)
    lse = torch.logsumexp(logits, -1) / math.log(2)
    output = output.masked_fill(lse.isneginf()[..., None], 0.0)
    return output.transpose(0, 1), lse.mT


def device_of(inputs):
    return next(
        (value.device for value in inputs.values() if isinstance(value, torch.Tensor)),
        torch.device("cpu"),
    )


def in_order(definition, inputs):
    """Tensors by place, None for Python scalars and what is absent."""
    values = [inputs[name] for name in definition["inputs"]]
    return [
        value.contiguous() if isinstance(value, torch.Tensor) else None
        for value in values
    ]


def builtin_truth(test, case, inputs, left=()):
    """The outputs, and what the operation leaves in the inputs of these names, which no output tells."""
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


def ground_truth(test, case, inputs, name):
    """The outputs by the ground truth of that name; Unavailable if it is not here."""
    if name == "builtin":
        return builtin_truth(test, case, inputs)[0]
    for function in test.GROUND_TRUTHS:
        if truth_name(function) == name:
            try:
                return as_outputs(
                    definition_of(test), function(test, copies(inputs)), name
                )
            except Exception as why:
                if refusal(why) is None:
                    raise
                raise Unavailable(refusal(why)) from why
    raise Unavailable("the operation has no call of it")


def refusal(why):
    """What a library says that has no such function, no kernel for this device or shape, nothing to compile it with, or
    not all of its parts installed; None: it failed."""
    module = isinstance(why, AttributeError) and str(why).startswith("module '")
    if isinstance(why, (NotImplementedError, ImportError)) or module:
        return str(why)
    words = (
        "not supported|unsupported|not implemented|no kernel image"
        "|compute capability|static assertion|could not find nvcc"
    )
    library = isinstance(why, (RuntimeError, ValueError))
    found = library and re.search(f".*({words}).*", str(why), re.IGNORECASE)
    return found[0].strip()[:300] if found else None


def truth_name(function):
    return function.__name__.rpartition("_")[2]


def truth_names(functions):
    """For parametrize: those that the class has, in order of preference."""
    return [*(truth_name(function) for function in functions), "builtin"]


def rule_of(test, case, inputs, index):
    """atol, rtol and hit ratio that `reftest verify` holds an output to: as reftest's kernels have it for these inputs;
    where they are not here as the class has it for this size, and of other cases the widest of all sizes."""
    try:
        return kernels().rule(kernels_case(test, case, inputs), index)
    except Unavailable:
        rules = getattr(test, "RULES", ())
        rows = rules[index] if rules else ()
    if not rows:
        raise Unavailable(f"what bounds {test.NAME} has, nothing says")
    if len(rows) > 1 and case in test.SIZES:
        return rows[test.SIZES.index(case)]
    return widest(*rows)


def widest(*rules):
    return (
        max(rule[0] for rule in rules),
        max(rule[1] for rule in rules),
        min(rule[2] for rule in rules),
    )


def tolerance(test, case, inputs, index, dtype, name):
    """atol, rtol and hit ratio of an output. reftest's kernels and torch hold to the bounds that `reftest verify` has. Other
    libraries round on the way, so that at least the dtype's usual tolerance is theirs, and the one that the family has for
    them."""
    rule = rule_of(test, case, inputs, index)
    if name in ("builtin", "torch"):
        return rule
    usual = TOLERANCES.get(dtype, (0.0, 0.0, 1.0))
    own = (
        test.TOLERANCE(definition_of(test), case.axes, index)
        if test.TOLERANCE
        else usual
    )
    return widest(usual, own, rule)


def first_truth(test, case, inputs):
    """Name and outputs of the first ground truth that is here; skips with every reason when none is."""
    reasons = []
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            return name, ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    pytest.skip("no ground truth: " + "; ".join(reasons))
