"""conftest_checks - compares outputs with ground truths and implements the tests of generated test classes. `reftest
generate` appends this file, from its first dashed line on, to conftest.py and conftest_truths.py, which contain the
imports and the functions that are called here."""

# ruff: noqa: F821


# ---- comparing ------------------------------------------------------------------------------------------------------


def compute_error_metrics(actual, expected, atol=0.0, rtol=0.0):
    """Measures the difference of two tensors. An element is within the bounds if |actual - expected| <= atol + rtol
    |expected|, or if both values are the same infinity. NaN is never within the bounds."""
    exact = not (actual.is_floating_point() or expected.is_floating_point())
    same = actual == expected if exact else None
    a, e = actual.detach().double().flatten(), expected.detach().double().flatten()
    difference = (a - e).abs()
    hit = (
        same.flatten()
        if exact
        else (difference <= atol + rtol * e.abs()) & e.isfinite() & a.isfinite()
    )
    hit = hit | ((a == e) & a.isinf())
    finite = a.isfinite() & e.isfinite()
    d, r = difference[finite], e[finite].abs().clamp(min=1e-8)
    norms = a[finite].norm() * e[finite].norm()
    bound = (atol + rtol * e.abs()).clamp(min=1e-300)
    badness = (difference / bound).nan_to_num(nan=torch.inf, posinf=torch.inf)
    badness = torch.where(hit, badness.clamp(max=1.0), badness + 2)
    worst = (
        badness.topk(min(WORST, badness.numel())).indices.tolist()
        if badness.numel()
        else []
    )
    total = max(a.numel(), 1)
    return {
        "elements": a.numel(),
        "max_abs": d.max().item() if d.numel() else 0.0,
        "mean_abs": d.mean().item() if d.numel() else 0.0,
        "max_rel": (d / r).max().item() if d.numel() else 0.0,
        "mean_rel": (d / r).mean().item() if d.numel() else 0.0,
        "cosine": (a[finite] @ e[finite] / norms).item() if norms > 0 else 1.0,
        "mse": d.square().mean().item() if d.numel() else 0.0,
        "hits": int(hit.sum().item()),
        "hit_ratio": hit.sum().item() / total if a.numel() else 1.0,
        "nan": (int(a.isnan().sum()), int(e.isnan().sum())),
        "inf": (int(a.isinf().sum()), int(e.isinf().sum())),
        "worst": [
            (unravel(flat, actual.shape), a[flat].item(), e[flat].item())
            for flat in worst
        ],
    }


def unravel(flat, shape):
    index = []
    for length in reversed(shape):
        index.append(flat % length)
        flat //= length
    return tuple(reversed(index))


def describe(metrics, atol, rtol, hit_ratio):
    m = types.SimpleNamespace(**metrics)
    text = (
        f"{m.hits} of {m.elements} elements are within {atol:.3g} + {rtol:.3g} |expected|\n"
        f"(hit ratio {m.hit_ratio:.4f}, needed {hit_ratio:g})\n"
        f"max abs {m.max_abs:.4g}, mean abs {m.mean_abs:.4g}, max rel {m.max_rel:.4g},\n"
        f"mean rel {m.mean_rel:.4g}, cosine {m.cosine:.6f}, mse {m.mse:.4g}\n"
        f"NaN: {m.nan[0]} actual, {m.nan[1]} expected;"
        f" infinite: {m.inf[0]} actual, {m.inf[1]} expected"
    )
    for index, actual, expected in m.worst:
        text += (
            f"\n  {list(index)}  actual {actual:.9g}  expected {expected:.9g}"
            f"  |difference| {abs(actual - expected):.4g}"
        )
    return text


def check_hit_ratio(actual, expected, atol, rtol, hit_ratio, what="output"):
    """Asserts that at least the fraction `hit_ratio` of the elements is within the bounds. The failure message shows
    all metrics and the five worst elements."""
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    )
    metrics = compute_error_metrics(actual, expected, atol, rtol)
    enough = metrics["hits"] >= hit_ratio * metrics["elements"]
    assert enough, f"{what}:\n{describe(metrics, atol, rtol, hit_ratio)}"


def assert_close(actual, expected, atol, rtol, what="output"):
    check_hit_ratio(actual, expected, atol, rtol, 1.0, what)


def is_judged(test, index):
    """Returns true if reftest's kernels judge this output, because no elementwise
    tolerance rule fits it."""
    rules = test.RULES
    return bool(rules) and rules[index] is None


def judge(test, case, inputs, outputs, index, what):
    """Asserts that reftest's kernels find an output correct. The output may come from the reference or from a
    library."""
    verdict = kernels().judge(
        kernels_case(test, case, inputs),
        index,
        in_order(definition_of(test), inputs),
        contiguous(outputs),
        builtin_truth(test, case, inputs)[0],
    )
    assert not verdict, f"{what}: {verdict}"


def compare(test, case, inputs, outputs, truth):
    """Asserts that the outputs agree with the ground truth `truth`."""
    for index, output in enumerate(definition_of(test)["outputs"]):
        what = f"{test.NAME}, output '{output}' against {truth.name}"
        assert isinstance(outputs[index], torch.Tensor), (
            f"{what}: a {type(outputs[index]).__name__} is not a tensor"
        )
        if is_judged(test, index):
            judge(test, case, inputs, outputs, index, what)
            continue
        rule = tolerance(test, case, inputs, index, truth)
        expected = truth.outputs[index].to(outputs[index].device)
        check_hit_ratio(outputs[index], expected, *rule, what=what)
        short = expected.dtype in (torch.bfloat16, torch.float16)
        if truth.coarse is None and short:
            check_rounding(test, case, inputs, outputs, truth, index, what)


def check_rounding(test, case, inputs, outputs, truth, index, what):
    """Asserts that an output is rounded to its dtype, not truncated. Asserts nothing if reftest's kernels are not
    installed."""
    try:
        wrong = kernels().rounding(
            kernels_case(test, case, inputs),
            index,
            contiguous(outputs),
            [
                x.to(y.dtype)
                for x, y in zip(contiguous(truth.outputs), outputs, strict=True)
            ],
        )
    except Unavailable:
        return
    assert not wrong, f"{what}: {wrong}"


def changed_inputs(test, inputs, left):
    """Returns those inputs to which the operation may write, and whose values the reference changed or should have
    changed."""
    return {
        name: leaves
        for name, leaves in (leaves_of(test) or {}).items()
        if isinstance(inputs[name], torch.Tensor)
        and not (leaves.may_keep and same_bits(left[name], inputs[name]))
    }


def own_truths(test, case, inputs, changed):
    """Computes the expected values of the changed inputs whose new values are not also
    outputs. Raises Unavailable if reftest's kernels are not installed."""
    names = [name for name, leaves in changed.items() if leaves.output is None]
    return builtin_truth(test, case, inputs, names)[1] if names else {}


def compare_left(test, case, inputs, left, truth):
    """Asserts that each input to which the reference wrote, or must write, has the values that the operation
    computes."""
    definition, changed = definition_of(test), changed_inputs(test, inputs, left)
    try:
        own = own_truths(test, case, inputs, changed)
    except Unavailable:
        own = {}  # no values to compare with: test_inputs_are_kept reports why
    for place, given in enumerate(definition["inputs"]):
        if given not in changed:
            continue
        what = (
            f"{test.NAME}: input '{given}' after the call, compared with {truth.name}"
        )
        if same_bits(left[given], inputs[given]):
            what = f"{test.NAME} leaves its input '{given}' unchanged, but must write to it"
        output = changed[given].output
        if output is not None:
            rule = tolerance(test, case, inputs, output, truth)
            expected = truth.outputs[output].to(left[given].device)
            check_hit_ratio(left[given], expected, *rule, what)
        elif given in own:
            text = kernels_case(test, case, inputs)
            rule = kernels().rule(text, len(definition["outputs"]) + place)
            check_hit_ratio(left[given], own[given], *rule, what)


def confirm(test, case, inputs, outputs, left, names):
    """Compares the outputs with the ground truths in `names`, in this order. Stops after
    the first ground truth that computes as exactly as the definition says (Truth.coarse
    is None). Returns two lists: the names of the ground truths that were compared, and
    the reasons why other ground truths could not be computed."""
    answered, reasons = [], []
    for name in names:
        try:
            truth = ground_truth(test, case, inputs, name)
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
            continue
        compare(test, case, inputs, outputs, truth)
        compare_left(test, case, inputs, left, truth)
        answered.append(name)
        if truth.coarse is None:
            return answered, reasons
    if answered:
        find(
            f"{test.NAME} {case}: only {' and '.join(answered)} gave a result, and their rounding errors may exceed "
            f"the bounds"
        )
    return answered, reasons


def contiguous(tensors):
    return [tensor.contiguous() for tensor in tensors]


# ---- the tests ------------------------------------------------------------------------------------------------------


def check_definition(test):
    """Asserts that the test file has the same reference and the same lengths of const
    axes as the definition's JSON file."""
    definition = definition_of(test)
    assert test.REFERENCE == definition["reference"], (
        f"the reference of definitions/{test.OP_TYPE}/{test.NAME}.json has changed since this file was generated: "
        "run `reftest generate`"
    )
    for name, axis in definition["axes"].items():
        length = length_of(axis)
        assert length is None or test.AXES[name] == length, (
            f"axis '{name}' is {length} in the JSON file, but not in this test: run `reftest generate`"
        )


def small_run(test, device):
    case = (
        test.SIZES[0]
        if test.SIZES
        else pytest.skip("the op family has no sizes for this definition")
    )
    inputs = make_inputs(test, case, device)
    return case, inputs, *run_and_leave(test, inputs)


def check_shapes(test, case, outputs):
    check_dtypes(test, outputs)
    definition = definition_of(test)
    sizes = resolve_axes(definition, case.axes)
    for (name, spec), output in zip(
        definition["outputs"].items(), outputs, strict=True
    ):
        if spec["shape"] is not None:
            found = (
                tuple(output.shape)
                if isinstance(output, torch.Tensor)
                else type(output).__name__
            )
            assert found == shape_of(spec, sizes), (
                f"output '{name}' has shape {found}, not {shape_of(spec, sizes)}"
            )


def check_output_shape(test, device):
    case, _, outputs, _ = small_run(test, device)
    check_shapes(test, case, outputs)


def check_output_dtype(test, device):
    _, _, outputs, _ = small_run(test, device)
    check_dtypes(test, outputs)


def check_dtypes(test, outputs):
    definition = definition_of(test)
    for (name, spec), output in zip(
        definition["outputs"].items(), outputs, strict=True
    ):
        if isinstance(output, torch.Tensor):
            assert output.dtype == dtype_of(spec), (
                f"output '{name}' is {output.dtype}, not {spec['dtype']}"
            )
        else:
            assert spec["shape"] is None, (
                f"output '{name}' is a {type(output).__name__}, not a tensor"
            )


def check_replaced(test, inputs, outputs, left):
    """Asserts that the reference writes to all inputs whose new values it also returns,
    or to none of them. Ignores an input whose new values equal its old values."""
    replaced = {
        name: leaves.output
        for name, leaves in (leaves_of(test) or {}).items()
        if leaves.output is not None and isinstance(inputs[name], torch.Tensor)
    }
    written = [name for name in replaced if not same_bits(left[name], inputs[name])]
    kept = [
        name
        for name, output in replaced.items()
        if name not in written and not same_bits(outputs[output], inputs[name])
    ]
    assert not written or not kept, (
        f"the reference wrote to its input '{written[0]}' but left its input '{kept[0]}' unchanged; it must write to "
        f"both, or return new tensors for both"
    )


def check_inputs_are_kept(test, device):
    """Asserts that the reference leaves its inputs unchanged. If the operation may write to an input, the input may
    also have the values that the operation computes."""
    case, inputs, outputs, left = small_run(test, device)
    if leaves_of(test) is None:
        pytest.skip("it is unknown which inputs this operation may write to")
    check_replaced(test, inputs, outputs, left)
    changed = changed_inputs(test, inputs, left)
    if not changed:
        return
    if all(leaves.output is not None for leaves in changed.values()):
        truth = first_truth(test, case, inputs)
    else:
        try:
            truth = ground_truth(test, case, inputs, "builtin")
        except Unavailable as why:
            pytest.skip(f"the expected contents of {list(changed)} are unknown: {why}")
    compare_left(test, case, inputs, left, truth)


def check_numerical_correctness(test, case, device):
    """Tests a case with the rules of `reftest verify`. Calls the reference with a first set of input values, with a
    second set of the same shapes, and with the first set again under other seeds. The outputs for both sets must agree
    with a ground truth, and the third call must give the same bits as the first. Some cases omit calls (runs_of)."""
    runs, sets = runs_of(test, case), []
    if 1 in runs:
        sets.append((case, make_inputs(test, case, device)))
    if 2 in runs:
        sets.append(make_second_inputs(test, case, device))
    calls, kept, run = [], [], run_of_class(class_of(test))
    for seed, (_, given) in enumerate(sets):
        calls.append(call_reference(test, given, seed, run))
        kept.append(copies_of(calls[-1].outputs))
    if len(runs) > len(sets):
        again = sets[0][1]
        calls.append(call_reference(test, again, 0 if test.SAMPLES else 2, run))
        seeds = "" if test.SAMPLES else " with other seeds"
        when = f"between two runs on the same inputs{seeds}"
        check_same(test, (kept[0], calls[0].left), calls[2][:2], when)
    check_memory_is_new(test, calls, kept)
    for place, (each, given) in enumerate(sets):
        check_replaced(test, given, kept[place], calls[place].left)
        check_outputs(test, each, given, kept[place], calls[place].left)
    if len(sets) > 1:
        check_both_sets(test, sets, kept)


def runs_of(test, case):
    """Returns one number for each run of the reference in a case, as in `reftest verify`: 1 if the run uses the first
    set of input values, 2 if it uses the second set."""
    sizes = [(size.label, size.axes) for size in test.SIZES]
    if case.repeats or (case.label, case.axes) not in sizes:
        return 1, 2, 1
    return test.RUNS[sizes.index((case.label, case.axes))]


def copies_of(outputs):
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in outputs]


def check_memory_is_new(test, calls, kept):
    """Asserts that no call reuses the memory of an earlier call's output. An output
    that has the same values for both sets of input values may reuse memory, because no
    earlier values are lost."""
    earlier = set()
    for call in calls:
        for place, name in enumerate(definition_of(test)["outputs"]):
            assert call.memory[place] not in earlier or same_bits(
                kept[0][place], kept[1][place]
            ), f"output '{name}' uses the memory of an output of an earlier call"
        earlier |= {address for address in call.memory if address is not None}


def check_both_sets(test, sets, outputs):
    """For each output that reftest's kernels judge, asserts that its values for both
    sets of input values are correct together. For example, random samples that were
    drawn with different seeds must differ."""
    for index, name in enumerate(definition_of(test)["outputs"]):
        if not is_judged(test, index):
            continue
        judged = [
            (
                kernels_case(test, case, inputs),
                on_host(in_order(definition_of(test), inputs)),
                on_host(contiguous(given)),
                on_host(builtin_truth(test, case, inputs)[0]),
            )
            for (case, inputs), given in zip(sets, outputs, strict=True)
        ]
        wrong = kernels().judge_both(judged, index)
        assert not wrong, f"{test.NAME}, output '{name}': {wrong}"


def check_outputs(test, case, inputs, outputs, left):
    check_shapes(test, case, outputs)
    names = ground_truths(test.FAMILY)
    answered, reasons = confirm(test, case, inputs, outputs, left, names)
    if not answered:
        pytest.skip("no ground truth: " + "; ".join(reasons))


def check_determinism(test, device):
    """Asserts that two calls with equal inputs return equal bits. The seeds of torch, NumPy and Python differ between
    the calls, unless the operation draws random samples."""
    _, inputs, *first = small_run(test, device)
    samples = test.SAMPLES
    second = run_and_leave(test, inputs, seed=0 if samples else 1)
    seeds = "and seeds" if samples else "with other seeds of torch, NumPy and Python"
    check_same(test, first, second, f"between two runs on the same inputs {seeds}")


def check_same(test, one, other, when):
    """Asserts that the outputs of two calls, and the inputs after these calls, have equal bits."""
    (first, first_left), (second, second_left) = one, other
    for name, a, b in zip(definition_of(test)["outputs"], first, second, strict=True):
        assert same_bits(a, b), f"output '{name}' differs {when}"
    for name, a in first_left.items():
        assert same_bits(a, second_left[name]), (
            f"input '{name}' after the call differs {when}"
        )


def check_calls_are_independent(test, device):
    """Asserts that outputs depend only on the inputs of the same call. The reference is called with a first set of
    input values, a second set with the same shapes, and the first set again. The last call must give the same outputs
    as the first."""
    small = [case for case in test.SIZES if case.label == "small"]
    case = (
        small[-1]
        if small
        else pytest.skip("the op family has no small sizes for this definition")
    )
    inputs = make_inputs(test, case, device)
    run = compiled(test)
    first = run_and_leave(test, inputs, run=run)
    kept = copies_of(first[0])
    second_case, second_inputs = make_second_inputs(test, case, device)
    outputs, left = run_and_leave(test, second_inputs, run=run)
    for name, a, b in zip(definition_of(test)["outputs"], first[0], kept, strict=True):
        assert same_bits(a, b), f"the next call overwrites output '{name}'"
    third = run_and_leave(test, inputs, run=run)
    check_same(test, first, third, "after a call with other input values")
    check_outputs(test, second_case, second_inputs, outputs, left)


def check_edge_case(test, case, device):
    """Asserts that an edge case gives outputs of the declared shapes, and that the outputs agree with a ground truth if
    one can be computed. In some edge cases, only a convention says which output is
    correct; there, a different output is a finding and not a failure."""
    inputs = make_inputs(test, case, device)
    if case.kind is None or 0 in case.axes.values():
        check_edge(test, case, inputs)
        return
    try:
        check_edge(test, case, inputs)
    except Exception as why:  # noqa: BLE001
        find(
            f"{test.NAME} departs from the convention of the edge case {case} "
            f"(`reftest verify {test.NAME} --edge` prints the convention): {why}"
        )


def check_edge(test, case, inputs):
    outputs, left = run_and_leave(test, inputs)
    check_shapes(test, case, outputs)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    changed = changed_inputs(test, inputs, left).keys()
    if any(
        value.numel() > 0 for value in [*tensors, *(left[name] for name in changed)]
    ):
        named = case.kind is not None
        names = ["builtin"] if named else ground_truths(test.FAMILY)
        confirm(test, case, inputs, outputs, left, names)


def check_against(test, case, name, device):
    inputs = make_inputs(test, case, device)
    try:
        truth = ground_truth(test, case, inputs, name)
    except Unavailable as why:
        pytest.skip(f"{name}: {why}")
    outputs, left = run_and_leave(test, inputs)
    compare(test, case, inputs, outputs, truth)
    compare_left(test, case, inputs, left, truth)


def check_ground_truths_agree(test, case, device):
    inputs = make_inputs(test, case, device)
    found, reasons = [], []
    for name in ground_truths(test.FAMILY):
        try:
            found.append(ground_truth(test, case, inputs, name))
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    if len(found) < 2:
        pytest.skip("fewer than two ground truths are available: " + "; ".join(reasons))
    *others, last = found
    for truth in others:
        check_truths_agree(test, case, inputs, truth, last)


def check_truths_agree(test, case, inputs, one, other):
    """Asserts that two ground truths agree. If no elementwise tolerance rule fits an output, reftest's kernels must
    find the output of each ground truth correct."""
    for index, output in enumerate(definition_of(test)["outputs"]):
        what = f"{test.NAME}, output '{output}': {one.name} against {other.name}"
        if is_judged(test, index):
            judge(test, case, inputs, one.outputs, index, what)
            continue
        rule = widest(
            tolerance(test, case, inputs, index, one),
            tolerance(test, case, inputs, index, other),
        )
        check_hit_ratio(one.outputs[index], other.outputs[index], *rule, what=what)


# ---- generated classes ----------------------------------------------------------------------------------------------


class DefinitionTests:
    """The base class of all generated test classes. A generated class sets attributes for one definition; the values
    below are the defaults. The report of a failure shows the line of the test method,
    and no other line of this file."""

    ROLES = OUTPUT_ROLES = AXES = CONSTANTS = LEAVES = SCALARS = constants()
    DEFAULT_NUMBERS = constants()
    MODES = SIZES = RUNS = OMITTED = EDGES = ()
    PROBE = None
    ENTRY_POINT = "run"
    RULES = rules()
    SAMPLES = False

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return random_inputs(cls, axes, device, seed)

    def test_definition_is_unchanged(self):
        __tracebackhide__ = False
        check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        __tracebackhide__ = False
        check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        __tracebackhide__ = False
        check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        __tracebackhide__ = False
        check_inputs_are_kept(self, device)

    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        __tracebackhide__ = False
        check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        __tracebackhide__ = False
        check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        __tracebackhide__ = False
        check_calls_are_independent(self, device)

    @torch.no_grad()
    def test_edge_cases(self, case, device):
        __tracebackhide__ = False
        check_edge_case(self, case, device)

    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        __tracebackhide__ = False
        check_against(self, case, name, device)

    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        __tracebackhide__ = False
        check_ground_truths_agree(self, case, device)


# For each test that runs several times: its parameters, in the order that they have in
# the test's ID.
PARAMETERS = {
    "test_numerical_correctness": lambda test: {
        "case": cases(test.OP_TYPE, test.NAME, default_sizes(test))
    },
    "test_edge_cases": lambda test: {"case": all_edges(test.SIZES, test.EDGES)},
    "test_against_ground_truth": lambda test: {
        "name": ground_truths(test.FAMILY),
        "case": some_cases(test.SIZES),
    },
    "test_ground_truths_agree": lambda test: {"case": some_cases(test.SIZES)},
}


def pytest_generate_tests(metafunc):
    inherited = getattr(DefinitionTests, metafunc.function.__name__, None)
    if metafunc.function is not inherited:
        return
    parameters = PARAMETERS.get(metafunc.function.__name__, lambda test: {})
    for name, values in parameters(metafunc.cls).items():
        metafunc.parametrize(name, values)
