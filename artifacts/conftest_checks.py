"""The third part of the generated conftest.py, from its first rule of dashes on: comparing, and what the tests do. Imports
and what it calls stand in the other two."""

# ruff: noqa: F821


# ---- comparing ------------------------------------------------------------------------------------------------------


def compute_error_metrics(actual, expected, atol=0.0, rtol=0.0):
    """How far two tensors are apart, over one rule: an element is hit if |actual - expected| <= atol + rtol |expected|, or
    both are the same infinity. NaN never is."""
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
    """At least `hit_ratio` of the elements are within the bounds; else every figure and the five worst places."""
    assert tuple(actual.shape) == tuple(expected.shape), (
        f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    )
    metrics = compute_error_metrics(actual, expected, atol, rtol)
    enough = metrics["hits"] >= hit_ratio * metrics["elements"]
    assert enough, f"{what}:\n{describe(metrics, atol, rtol, hit_ratio)}"


def assert_close(actual, expected, atol, rtol, what="output"):
    check_hit_ratio(actual, expected, atol, rtol, 1.0, what)


def is_judged(test, inputs, outputs):
    """Did the family judge what no element rule fits? Then no ground truth is needed."""
    return test.JUDGE is not None and test.JUDGE(definition_of(test), inputs, outputs)


def compare(test, case, inputs, outputs, truth, name):
    """Are these outputs right, by the ground truth of that name? What no element rule fits, the family judges."""
    definition = definition_of(test)
    if is_judged(test, inputs, outputs):
        return
    for index, (output, spec) in enumerate(definition["outputs"].items()):
        what = f"{test.NAME}, output '{output}' against {name}"
        assert isinstance(outputs[index], torch.Tensor), (
            f"{what}: a {type(outputs[index]).__name__} is no tensor"
        )
        if name == "builtin":
            text = kernels_case(test, case, inputs)
            verdict = kernels().judge(
                text, index, in_order(definition, inputs), contiguous(outputs), truth
            )
            assert not verdict, f"{what}: {verdict}"
            if verdict == "":
                continue
        rule = tolerance(test, case, inputs, index, dtype_of(spec), name)
        check_hit_ratio(
            outputs[index], truth[index].to(outputs[index].device), *rule, what=what
        )


def changed_inputs(test, inputs, left):
    """Those that the operation may write to and that were written to, or should have been."""
    return {
        name: leaves
        for name, leaves in (leaves_of(test) or {}).items()
        if isinstance(inputs[name], torch.Tensor)
        and (leaves is WRITTEN or not same_bits(left[name], inputs[name]))
    }


def own_truths(test, case, inputs, changed):
    """What those inputs should hold that no output tells; Unavailable where reftest's kernels are."""
    names = [name for name, leaves in changed.items() if not isinstance(leaves, int)]
    return builtin_truth(test, case, inputs, names)[1] if names else {}


def compare_left(test, case, inputs, left, truth, name):
    """Does every input that was written to hold what the operation leaves there?"""
    definition, changed = definition_of(test), changed_inputs(test, inputs, left)
    try:
        own = own_truths(test, case, inputs, changed)
    except Unavailable:
        own = {}  # test_inputs_are_kept says so
    for place, (given, spec) in enumerate(definition["inputs"].items()):
        what = f"{test.NAME}, what it leaves in its input '{given}' against {name}"
        leaves = changed.get(given)
        if isinstance(leaves, int):
            rule = tolerance(test, case, inputs, leaves, dtype_of(spec), name)
            check_hit_ratio(
                left[given], truth[leaves].to(left[given].device), *rule, what
            )
        elif given in own:
            text = kernels_case(test, case, inputs)
            rule = kernels().rule(text, len(definition["outputs"]) + place)
            check_hit_ratio(left[given], own[given], *rule, what)


def contiguous(tensors):
    return [tensor.contiguous() for tensor in tensors]


# ---- what the tests do ----------------------------------------------------------------------------------------------


def check_definition(test):
    """The reference and the constants here are those of the JSON file."""
    definition = definition_of(test)
    assert test.REFERENCE == definition["reference"], (
        f"the reference of definitions/{test.OP_TYPE}/{test.NAME}.json has changed since this file was made: "
        "run `reftest generate`"
    )
    for name, axis in definition["axes"].items():
        if axis["type"] == "const":
            assert test.AXES[name] == axis["value"], (
                f"axis '{name}' is {axis['value']} in the JSON file: run `reftest generate`"
            )


def small_run(test, device):
    case = (
        test.SIZES[0]
        if test.SIZES
        else pytest.skip("the family has no sizes for this definition")
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


def check_inputs_are_kept(test, device):
    """Inputs hold what they held, and those that the operation may write to that or what it leaves there."""
    case, inputs, _, left = small_run(test, device)
    if leaves_of(test) is None:
        pytest.skip("which inputs this operation may write to, nothing says")
    changed = changed_inputs(test, inputs, left)
    if not changed:
        return
    if all(isinstance(leaves, int) for leaves in changed.values()):
        name, truth = first_truth(test, case, inputs)
    else:
        try:
            name, truth = "builtin", ground_truth(test, case, inputs, "builtin")
        except Unavailable as why:
            pytest.skip(f"what is left in {list(changed)}, no output tells: {why}")
    compare_left(test, case, inputs, left, truth, name)


def check_numerical_correctness(test, case, device):
    inputs = make_inputs(test, case, device)
    check_outputs(test, case, inputs, *run_and_leave(test, inputs))


def check_outputs(test, case, inputs, outputs, left):
    check_shapes(test, case, outputs)
    if is_judged(test, inputs, outputs):
        return
    name, truth = first_truth(test, case, inputs)
    compare(test, case, inputs, outputs, truth, name)
    compare_left(test, case, inputs, left, truth, name)
    if name not in ("torch", "builtin"):
        compare_with_builtin(test, case, inputs, outputs, left)


def compare_with_builtin(test, case, inputs, outputs, left):
    """What a library allows that rounds on the way, reftest's kernels may not: where they are here, their bounds count."""
    try:
        truth = ground_truth(test, case, inputs, "builtin")
    except Unavailable:
        return
    compare(test, case, inputs, outputs, truth, "builtin")
    compare_left(test, case, inputs, left, truth, "builtin")


def check_determinism(test, device):
    """The same inputs give the same bits, whatever the seeds of torch, NumPy and Python, unless the operation draws from
    them."""
    _, inputs, *first = small_run(test, device)
    samples = getattr(test, "SAMPLES", False)
    second = run_and_leave(test, inputs, seed=0 if samples else 1)
    seeds = "and seeds" if samples else "with other seeds of torch, NumPy and Python"
    check_same(test, first, second, f"between two runs on the same inputs {seeds}")


def same_memory(one, other):
    """Do two tensors share memory? Both are held, so that neither can have got what the other gave back."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    places = [value.untyped_storage().data_ptr() for value in (one, other)]
    return places[0] == places[1] != 0


def check_same(test, one, other, when):
    """The same bits in outputs, and in what is left in inputs."""
    (first, first_left), (second, second_left) = one, other
    for name, a, b in zip(definition_of(test)["outputs"], first, second, strict=True):
        assert same_bits(a, b), f"output '{name}' differs {when}"
    for name, a in first_left.items():
        assert same_bits(a, second_left[name]), (
            f"what is left in input '{name}' differs {when}"
        )


def check_calls_are_independent(test, device):
    """What is returned depends on the inputs of this call alone: other contents of the same shapes get an answer of their
    own, and the first contents the same one as before."""
    small = [case for case in test.SIZES if case.label == "small"]
    case = small[-1] if small else pytest.skip("the family has no small size")
    inputs = make_inputs(test, case, device)
    run = compile_reference(test.REFERENCE, test.NAME)
    first = run_and_leave(test, inputs, run=run)
    second_case, second_inputs = make_second_inputs(test, case, device)
    outputs, left = run_and_leave(test, second_inputs, run=run)
    third = run_and_leave(test, inputs, run=run)
    for name, a, b in zip(
        definition_of(test)["outputs"], first[0], outputs, strict=True
    ):
        assert not same_memory(a, b), (
            f"output '{name}' overwrites that of the call before"
        )
    check_same(test, first, third, "once the reference was called on other contents")
    check_outputs(test, second_case, second_inputs, outputs, left)


def check_edge_case(test, case, device):
    """Shapes hold, and where there is a ground truth the values do."""
    inputs = make_inputs(test, case, device)
    outputs, left = run_and_leave(test, inputs)
    check_shapes(test, case, outputs)
    tensors = [output for output in outputs if isinstance(output, torch.Tensor)]
    changed = changed_inputs(test, inputs, left).keys()
    if all(
        value.numel() == 0 for value in [*tensors, *(left[name] for name in changed)]
    ):
        return
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            truth = ground_truth(test, case, inputs, name)
        except Unavailable:
            continue
        compare(test, case, inputs, outputs, truth, name)
        compare_left(test, case, inputs, left, truth, name)
        return
    is_judged(test, inputs, outputs)


def check_against(test, case, name, device):
    inputs = make_inputs(test, case, device)
    try:
        truth = ground_truth(test, case, inputs, name)
    except Unavailable as why:
        pytest.skip(f"{name}: {why}")
    outputs, left = run_and_leave(test, inputs)
    compare(test, case, inputs, outputs, truth, name)
    compare_left(test, case, inputs, left, truth, name)


def check_ground_truths_agree(test, case, device):
    inputs = make_inputs(test, case, device)
    found, reasons = [], []
    for name in truth_names(test.GROUND_TRUTHS):
        try:
            found.append((name, ground_truth(test, case, inputs, name)))
        except Unavailable as why:
            reasons.append(f"{name}: {why}")
    if len(found) < 2:
        pytest.skip("fewer than two ground truths are here: " + "; ".join(reasons))
    *others, (first, expected) = found
    for name, actual in others:
        check_truths_agree(test, case, inputs, (name, actual), (first, expected))


def check_truths_agree(test, case, inputs, one, other):
    """What no element rule fits, each must be right in by itself."""
    (name, actual), (first, expected) = one, other
    if is_judged(test, inputs, actual) and is_judged(test, inputs, expected):
        return
    for index, (output, spec) in enumerate(definition_of(test)["outputs"].items()):
        check_hit_ratio(
            actual[index],
            expected[index],
            *tolerance(test, case, inputs, index, dtype_of(spec), name),
            what=f"{test.NAME}, output '{output}': {name} against {first}",
        )
