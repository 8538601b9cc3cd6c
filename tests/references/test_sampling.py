# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: d7f32de8943b61e42cda430ab03f3a77
"""Tests of definitions/sampling. conftest.py says how they run."""

import pytest
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


# definition: "min_p_sampling_from_probs_v32000"
class TestMinPSamplingFromProbsV32000:
    OP_TYPE = "sampling"
    NAME = "min_p_sampling_from_probs_v32000"
    VARIANT = 4  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=640),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # samples
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = True
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, min_p):
    largest = probs.amax(dim=-1, keepdim=True)
    kept = torch.where(probs >= min_p[:, None] * largest, probs, 0.0)
    return torch.multinomial(kept, 1).squeeze(-1)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "sampling_from_probs_v32000"
class TestSamplingFromProbsV32000:
    OP_TYPE = "sampling"
    NAME = "sampling_from_probs_v32000"
    VARIANT = 0  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=512),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # samples
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = True
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs):
    return torch.multinomial(probs, 1).squeeze(-1).to(torch.int32)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "top_k_renorm_probs_v32000"
class TestTopKRenormProbsV32000:
    OP_TYPE = "sampling"
    NAME = "top_k_renorm_probs_v32000"
    VARIANT = 9  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # renormalised
            (1e-10, 1e-05, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k):
    renormalised = torch.zeros_like(probs)
    for row, out, k in zip(probs, renormalised, top_k.tolist()):
        k = len(row) if k <= 0 else min(k, len(row))
        values, tokens = torch.topk(row, k)
        out[tokens] = values / values.sum()
    return renormalised
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "top_k_sampling_from_probs_v32000"
class TestTopKSamplingFromProbsV32000:
    OP_TYPE = "sampling"
    NAME = "top_k_sampling_from_probs_v32000"
    VARIANT = 1  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=256),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # samples
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = True
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k):
    vocab_size = probs.shape[1]
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, k in zip(probs.float(), top_k.tolist()):
        if k <= 0 or k > vocab_size:
            k = vocab_size
        weights, tokens = torch.topk(row, k)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "top_k_top_p_sampling_from_probs_v128256"
class TestTopKTopPSamplingFromProbsV128256:
    OP_TYPE = "sampling"
    NAME = "top_k_top_p_sampling_from_probs_v128256"
    VARIANT = 3  # of op family sampling
    VOCAB_SIZE = 128256
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # samples
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = True
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k, top_p):
    vocab_size = probs.shape[1]
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, k, p in zip(probs.float(), top_k.tolist(), top_p.tolist()):
        if k <= 0 or k > vocab_size:
            k = vocab_size
        weights, tokens = torch.topk(row, k)
        weights = weights / weights.sum()
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "top_p_renorm_probs_v32000"
class TestTopPRenormProbsV32000:
    OP_TYPE = "sampling"
    NAME = "top_p_renorm_probs_v32000"
    VARIANT = 10  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=128),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # renormalised
            (1e-10, 1e-05, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_p):
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    before = torch.cumsum(values, dim=-1) - values
    values = torch.where(before <= top_p[:, None], values, 0.0)
    kept = torch.zeros_like(probs).scatter(-1, tokens, values)
    return kept / kept.sum(dim=-1, keepdim=True)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "top_p_sampling_from_probs_v32000"
class TestTopPSamplingFromProbsV32000:
    OP_TYPE = "sampling"
    NAME = "top_p_sampling_from_probs_v32000"
    VARIANT = 2  # of op family sampling
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=256),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # samples
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = True
    GROUND_TRUTHS = (
        sampling_flashinfer,
        sampling_sglang,
    )
    TOLERANCE = None
    JUDGE = staticmethod(sampling_judge)
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_p):
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, p in zip(probs.float(), top_p.tolist()):
        weights, tokens = torch.sort(row, descending=True)
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return sampling_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
