"""conftest_calls - calls a reference as `reftest verify` does, and asserts that the
call has no side effects. `reftest generate` appends this file, from its first dashed
line on, to conftest.py, which contains the imports. The functions that are called here
are in the other parts of conftest.py."""

# ruff: noqa: F821


# ---- calls of references --------------------------------------------------------------------------------------------


def compile_reference(test):
    """Compiles a test's reference and returns its entry point. Tracebacks show the source lines of the reference."""
    source, name = test.REFERENCE, test.NAME
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = types.ModuleType(name)
    module.__builtins__ = builtins
    types.FunctionType(compile(source, filename, "exec"), module.__dict__)()
    if test.ENTRY_POINT != "run" and hasattr(module, "run"):
        pytest.fail("the reference defines the function run() dynamically")
    run, definition = getattr(module, test.ENTRY_POINT), definition_of(test)
    plain = test.ENTRY_POINT == "run" and not definition["left_out"]
    if plain and all(map(is_argument, definition["inputs"])):
        return run
    return fitted(run, fitting_of(definition))


def run_reference(test, inputs):
    """Runs the reference on copies of the inputs and returns the outputs in the order of the definition."""
    return run_and_leave(test, inputs)[0]


def run_and_leave(test, inputs, seed=0, run=None):
    """Calls the reference on copies of the inputs. Returns the outputs, and {name: value after the call} for the inputs
    that the operation may write to. Asserts that all other inputs and torch's settings are unchanged, and that the
    outputs are on the same device as the inputs. Gradients are enabled, as in `reftest verify`. If `run` is None,
    compiles the reference anew. Otherwise calls `run`, which may keep state from earlier calls."""
    return call_reference(test, inputs, seed, run)[:2]


# The results of a call of a reference. `left` is {name: value after the call} for the inputs that the operation may
# write to. `memory` has, for each output, the address of its memory, or None if the
# output uses the memory of an input.
Called = collections.namedtuple("Called", "outputs left memory")


def call_reference(test, inputs, seed=0, run=None):
    theirs = copies(inputs)
    with reference_may_run(test):
        run = run or compile_reference(test)
        seed_everything(seed)
        result = run(**theirs)
    outputs = checked_outputs(test, inputs, outputs_or_inputs(test, result, theirs))
    leaves = leaves_of(test)
    for name, value in theirs.items():
        if leaves is None:
            find_change(test, name, value, inputs[name])
        elif name not in leaves:
            check_is_kept(test, name, value, inputs[name])
    given = {memory_of(value) for value in theirs.values()}
    memory = [memory_of(output) for output in outputs]
    return Called(
        outputs,
        {name: theirs[name] for name in leaves or ()},
        [None if address in given else address for address in memory],
    )


def outputs_or_inputs(test, result, inputs):
    """Returns the outputs. If the reference returns None, and each output has the name of an input, these inputs are
    the outputs."""
    names = list(definition_of(test)["outputs"])
    tensors = [inputs.get(name) for name in names]
    if result is None and all(isinstance(x, torch.Tensor) for x in tensors):
        return dict(zip(names, tensors))
    return result


def compiled(test):
    """Compiles the test's reference anew, and returns its function, which keeps its
    state between calls."""
    with reference_may_run(test):
        return compile_reference(test)


def class_of(test):
    return test if isinstance(test, type) else type(test)


@functools.cache
def run_of_class(test_class):
    """Returns the function `run` of a class's reference. As in `reftest verify`, all
    cases of the class call the same function. If the reference keeps state, a test can
    therefore detect that a case depends on an earlier case."""
    return compiled(test_class)


@contextlib.contextmanager
def reference_may_run(test):
    with torch.enable_grad(), settings_are_kept(test.NAME), files_are_found(test):
        yield


def memory_of(value):
    """Returns the address of a tensor's memory, or None if the value has no memory."""
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return value.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None


@contextlib.contextmanager
def files_are_found(test):
    """If the definition names files that its reference reads, makes the dataset's folder the working directory: the
    paths of these files are relative to this folder."""
    before = os.getcwd()
    if definition_of(test).get("reads"):
        os.chdir(ROOT)
    try:
        yield
    finally:
        os.chdir(before)


def checked_outputs(test, inputs, result):
    """Returns the outputs as tensors that are detached from autograd. Asserts that the outputs are on the device of the
    inputs."""
    if type(result) is list:
        find(f"{test.NAME} returns a list; expected a tuple, a dict or one tensor")
    outputs = as_outputs(definition_of(test), result, test.NAME)
    devices = {x.device for x in inputs.values() if isinstance(x, torch.Tensor)}
    for place, (name, spec) in enumerate(definition_of(test)["outputs"].items()):
        output = outputs[place] = as_tensor(spec, outputs[place])
        if not isinstance(output, torch.Tensor):
            continue
        assert not devices or output.device in devices, (
            f"{test.NAME} returns output '{name}' on {output.device}; its inputs are on {devices.pop()}"
        )
        if output.requires_grad:
            find(f"{test.NAME} returns output '{name}' with requires_grad set")
            outputs[place] = output.detach()
    return outputs


def as_tensor(spec, value):
    """Converts a scalar output that is a Python number to a tensor of the declared dtype, as `reftest verify` does."""
    if spec["shape"] is not None or type(value) not in (bool, int, float):
        return value
    dtype = dtype_of(spec)
    kind = bool if dtype is torch.bool else float if dtype.is_floating_point else int
    return torch.tensor(value, dtype=dtype if type(value) is kind else None)


def find_change(test, name, value, before):
    """Reports that an operation without an op family changed an input. The change is a finding and not a failure,
    because some operations update a buffer in place."""
    if not same_bits(value, before):
        find(f"{test.NAME} changes its input '{name}', {first_change(value, before)}")


def check_is_kept(test, name, value, before):
    assert same_bits(value, before), (
        f"{test.NAME} changes its input '{name}', {first_change(value, before)}"
    )
    if isinstance(value, torch.Tensor) and value._version > 0:  # a fresh copy has 0
        find(f"{test.NAME} writes to its input '{name}' and restores it")


class Finding(UserWarning):
    """A finding: a warning about a reference whose results are correct, but whose
    behaviour may surprise a caller."""


def find(sentence):
    warnings.warn(sentence, Finding, stacklevel=2)


# The settings of torch that a reference must not change. Each setting has a function that reads it and a function that
# sets it. SETTINGS in python/runner.py of reftest must have the same rows.
SETTINGS = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "default device": (
        torch.get_default_device,
        lambda device: torch.set_default_device(
            None if device.type == "cpu" else device
        ),
    ),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic mode": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
}


@contextlib.contextmanager
def settings_are_kept(who):
    """Asserts that the code in the with block changes none of SETTINGS. Restores changed settings of torch, because
    other tests depend on these settings."""
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    changed = []
    try:
        yield
    finally:
        for name, (read, write) in SETTINGS.items():
            if read() != before[name]:
                changed.append(f"{name}, from {before[name]} to {read()}")
                write(before[name])
    assert not changed, f"{who} changes torch's {'; '.join(changed)}"


def seed_everything(seed):
    """Seeds the generators of torch, CUDA, Python and NumPy, as python/runner.py of reftest does."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


def leaves_of(test):
    """Returns {input: Left} for the inputs that the operation may write to, or None if
    these inputs are unknown. In these Left objects, `output` is the index of an output
    and not its name."""
    if test.LEAVES is None:
        return None
    definition = definition_of(test)
    names = list(definition["outputs"])
    leaves = {
        name: Left(entry, True) if isinstance(entry, str) else entry
        for name, entry in test.LEAVES.items()
    }
    return {
        name: left
        if left.output is None
        else left._replace(output=names.index(left.output))
        for name, left in leaves.items()
        if left.output is None
        or is_alike(definition["outputs"][left.output], definition["inputs"][name])
    }


def is_alike(one, other):
    return (one["dtype"], one["shape"]) == (other["dtype"], other["shape"])


def same_bits(a, b):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return repr(a) == repr(b)
    alike = a.shape == b.shape and a.dtype == b.dtype
    return alike and torch.equal(bits(a), bits(b))


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def first_change(now, before):
    was, found = ((x.dtype, tuple(x.shape)) for x in (before, now))
    if was != found:
        return f"from {was} to {found}"
    differ = (bits(now) != bits(before)).view(-1, now.element_size()).any(1)
    flat = int(differ.nonzero()[0])
    was, found = (x.contiguous().flatten()[flat].item() for x in (before, now))
    return f"first at {list(unravel(flat, now.shape))}: {was}, then {found}"


def as_outputs(definition, result, who):
    names = list(definition["outputs"])
    if isinstance(result, dict):
        assert sorted(map(str, result)) == sorted(names), (
            f"{who} returns {sorted(map(str, result))}, but the definition has the outputs {names}"
        )
        result = [result[name] for name in names]
    elif not isinstance(result, (tuple, list)):
        result = [result]
    assert len(result) == len(names), (
        f"{who} returns {len(result)} outputs, but the definition has {len(names)}: {names}"
    )
    return list(result)


def copies(inputs):
    return {
        name: value.clone() if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }
