# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 72cb1bed83fef1b8c467308981aa6f7c
"""Tests of definitions/softmax. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def softmax_parts(definition):
    """Names of the logits, which have the output's rank, and of the temperature (None without one)."""
    specs, (output,) = definition["inputs"], definition["outputs"].values()
    ranks = {name: len(spec["shape"] or ()) for name, spec in specs.items()}
    logits = next(name for name in specs if ranks[name] == len(output["shape"]))
    return logits, next((name for name in specs if name != logits), None)


def softmax_inputs(definition, axes, device="cpu", seed=0):
    """Rows of every width of spread, one far from 0, one of equal values, one with a single large value."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 0.7
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if name == softmax_parts(definition)[1]:
            values = values * 0.6 + 1.1
        else:
            rows = values.view(-1, shape[-1])
            rows *= torch.tensor([4.0, 8.0, 0.5, 1.0]).repeat(len(rows))[
                : len(rows), None
            ]
            if len(rows) > 4:
                rows[1] += 60.0
                rows[2] = 1.0
                rows[3, -1] = 30.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def softmax_torch(test, inputs):
    """In float64."""
    definition = conftest.definition_of(test)
    (output,) = definition["outputs"].values()
    logits, temperature = softmax_parts(definition)
    logits = inputs[logits].double()
    if temperature is not None:
        temperature = inputs[temperature]
        if isinstance(temperature, torch.Tensor):
            temperature = temperature.double().view(-1, *[1] * (logits.dim() - 1))
        logits = logits / temperature
    return logits.softmax(-1).to(conftest.dtype_of(output))


def softmax_flashinfer(test, inputs):
    sampling = conftest.need("flashinfer.sampling", conftest.device_of(inputs))
    logits, temperature = softmax_parts(conftest.definition_of(test))
    logits, temperature = inputs[logits], inputs.get(temperature)
    rows = logits.float().contiguous().view(-1, logits.shape[-1])
    return sampling.softmax(rows, temperature=temperature).view(logits.shape)


# definition: "softmax_e256"
class TestSoftmaxE256:
    OP_TYPE = "softmax"
    NAME = "softmax_e256"
    VARIANT = 0  # of op family softmax
    NUM_EXPERTS = 256
    AXES = conftest.constants(
        num_tokens=None,
        num_experts=NUM_EXPERTS,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=256),
        conftest.size("medium", num_tokens=513),
        conftest.size("large", num_tokens=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        softmax_flashinfer,
        softmax_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits):
    return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return softmax_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "softmax_v128256"
class TestSoftmaxV128256:
    OP_TYPE = "softmax"
    NAME = "softmax_v128256"
    VARIANT = 1  # of op family softmax
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
        conftest.size("medium", batch_size=65),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        softmax_flashinfer,
        softmax_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits / temperature[:, None]
    return torch.softmax(scaled, dim=-1)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return softmax_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "softmax_v151936"
class TestSoftmaxV151936:
    OP_TYPE = "softmax"
    NAME = "softmax_v151936"
    VARIANT = 1  # of op family softmax
    VOCAB_SIZE = 151936
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=16),
        conftest.size("medium", batch_size=65),
        conftest.size("large", batch_size=1024),
    )
    SCALARS = conftest.constants(
        temperature=[
            0.3,
            4.0,
            0.15,
            4.0,
        ],
    )
    RULES = conftest.rules(
        [  # probs
            (1e-37, 0.0002, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        softmax_flashinfer,
        softmax_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(logits, temperature):
    scaled = logits.float() / temperature
    exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return softmax_inputs(conftest.definition_of(cls), axes, device, seed)

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
