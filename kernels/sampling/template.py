"""sampling in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest


def sampling_roles(definition):
    """Names by part: "probs", and of "top_k", "top_p", "min_p" those that are there."""
    roles = {}
    for name, spec in definition["inputs"].items():
        if len(spec["shape"] or ()) == 2:
            roles["probs"] = name  # which may have a filter's name
            continue
        filters = [part for part in ("top_k", "top_p", "min_p") if part in name]
        assert filters, f"'{name}' is none of probs, top_k, top_p, min_p"
        roles[filters[0]] = name
    return roles


def sampling_inputs(definition, axes, device="cpu", seed=0):
    """Rows of eight likely tokens at random places of the vocabulary, of which the filters keep two: the third would be
    drawn every fifth time. Boundaries lie far from any sum of probabilities, so that no rounding decides; every other
    block of eight rows has a tail of tiny probabilities; every 16th row keeps one token alone."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    roles = sampling_roles(definition)
    rows, vocab = conftest.shape_of(definition["inputs"][roles["probs"]], sizes)
    heavy = torch.tensor([76, 68, 52, 24, 16, 10, 6, 4]) / 256
    probs = torch.zeros(rows, vocab)
    for row in range(rows):
        places = torch.randperm(vocab, generator=generator)[:8]
        if row % 4 == 1:
            places[row % 8] = 0 if 0 not in places else places[row % 8]
        probs[row, places] = heavy
        if row // 8 % 2 == 1:
            tail = torch.full((min(vocab, 65536),), 2.0**-24)
            tail[places[places < len(tail)]] = 0
            probs[row, : len(tail)] += tail
            probs[row, places[7]] -= tail.sum()
    single = torch.arange(rows) % 16 == 15
    both = "top_k" in roles and "top_p" in roles
    values = {
        "probs": probs,
        "top_k": torch.where(single, 1, 3 if both else 2),
        "top_p": torch.where(single, 0.1, 0.65 if both else 0.43),
        "min_p": torch.where(single, 0.95, 0.79),
    }
    inputs = {}
    for part, name in roles.items():
        spec = definition["inputs"][name]
        if spec["shape"] is None:
            inputs[name] = {"top_k": 2, "top_p": 0.43, "min_p": 0.79}[part]
        else:
            inputs[name] = values[part].to(conftest.dtype_of(spec)).to(device)
    return {name: inputs[name] for name in definition["inputs"]}


def sampling_kept(definition, inputs):
    """The filtered, renormalised probabilities in float64: top-k first, ties kept; then top-p; min-p."""
    roles = sampling_roles(definition)
    probs = inputs[roles["probs"]].double()
    rows, vocab = probs.shape

    def column(part):
        value = inputs[roles[part]]
        return (
            torch.as_tensor(value, device=probs.device)
            .double()
            .expand(rows)
            .view(-1, 1)
        )

    ordered = probs.sort(dim=-1, descending=True).values
    if "top_k" in roles:
        k = column("top_k").long()
        k = torch.where((k <= 0) | (k > vocab), vocab, k)
        probs = torch.where(probs >= ordered.gather(1, k - 1), probs, 0.0)
        probs = probs / probs.sum(-1, keepdim=True)
    if "top_p" in roles:
        ordered, order = probs.sort(dim=-1, descending=True)
        before = ordered.cumsum(-1) - ordered
        kept = torch.zeros_like(probs, dtype=torch.bool)
        kept = kept.scatter(1, order, (before <= column("top_p")) | (before == 0))
        probs = torch.where(kept, probs, 0.0)
    if "min_p" in roles:
        least = column("min_p") * probs.max(-1, keepdim=True).values
        probs = torch.where(probs >= least, probs, 0.0)
    return probs / probs.sum(-1, keepdim=True)


def sampling_judge(definition, inputs, outputs):
    """Samples are random: each must be one of the tokens that are kept, and the most likely of them must come about as
    often as they should. False: these are probabilities, to be compared."""
    (samples,) = outputs
    if samples.is_floating_point():
        return False
    kept = sampling_kept(definition, inputs)
    rows, vocab = kept.shape
    assert ((samples >= 0) & (samples < vocab)).all(), (
        "a sample is outside the vocabulary"
    )
    drawn = kept.gather(1, samples.long().view(-1, 1)).flatten()
    wrong = (drawn == 0).nonzero().flatten().tolist()
    places = [f"[{row}] drew {samples[row]}" for row in wrong[: conftest.WORST]]
    assert not wrong, (
        f"{len(wrong)} of {rows} rows drew a token that the filter drops: {', '.join(places)}"
    )
    likely = kept.max(-1).values
    hits = (drawn == likely).double().sum()
    expected, deviation = likely.sum(), (likely * (1 - likely)).sum().sqrt()
    assert (hits - expected).abs() <= 5 * deviation + 1e-9, (
        f"the most likely token came {hits:.0f} times in {rows} rows, expected {expected:.1f} (deviation {deviation:.1f})"
    )
    return True


def sampling_call(test, inputs, module):
    definition = conftest.definition_of(test)
    roles = sampling_roles(definition)
    filters = [part for part in ("top_k", "top_p", "min_p") if part in roles]
    (output,) = definition["outputs"].values()
    name = "_".join(
        [
            *filters,
            "sampling_from_probs" if "int" in output["dtype"] else "renorm_probs",
        ]
    )
    name = (
        name.replace("renorm_probs", "renorm_prob")
        if not hasattr(module, name)
        else name
    )
    if not hasattr(module, name):
        raise NotImplementedError(f"there is no {name}")
    probs = inputs[roles["probs"]].contiguous()
    result = getattr(module, name)(probs, *(inputs[roles[part]] for part in filters))
    result = result[0] if isinstance(result, tuple) else result
    return result.to(conftest.dtype_of(output))


def sampling_flashinfer(test, inputs):
    module = conftest.need("flashinfer.sampling", conftest.device_of(inputs))
    return sampling_call(test, inputs, module)


def sampling_sglang(test, inputs):
    module = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return sampling_call(test, inputs, module)
