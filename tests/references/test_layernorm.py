# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: b59f7549278ecc44193caf6d80d94486
"""Tests of definitions/layernorm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def layernorm_parts(definition):
    """Names of the activations, of the weight and of the bias (None without one), which is the second vector where no name
    says that it is the first."""
    specs = definition["inputs"]
    names = conftest.tensor_inputs(definition)
    hidden = next(name for name in names if len(specs[name]["shape"]) > 1)
    vectors = [name for name in names if name != hidden]
    if "bias" in vectors[0] or "beta" in vectors[0]:
        vectors.reverse()
    return hidden, *vectors, *[None] * (2 - len(vectors))


def layernorm_inputs(definition, axes, device="cpu", seed=0):
    """Noise, and rows that show mistakes: one so small that epsilon counts, one of zeros, one far from 0, a huge one."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 4e-6
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if len(shape) > 1:
            rows = values.view(-1, shape[-1])
            scales = (0.002, 0.0, 1.0, 100.0)
            for row, scale in zip(rows, scales, strict=False):
                row *= scale
            if len(rows) > 2:
                rows[2] += 2.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def layernorm_flashinfer(test, inputs):
    norm = conftest.need("flashinfer.norm", conftest.device_of(inputs))
    names = layernorm_parts(conftest.definition_of(test))
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    x, weight, bias = (inputs.get(name) for name in names)
    if bias is None or not weight.dtype == bias.dtype == torch.float32:
        raise NotImplementedError("it takes a weight and a bias of float32")
    if x.dtype != torch.bfloat16:
        raise NotImplementedError("it takes activations of bfloat16")
    return norm.layernorm(x.contiguous().view(-1, x.shape[-1]), weight, bias, eps).view(
        x.shape
    )


def layernorm_probe(test):
    """Rows of x and -x by turns answer with x / sqrt(x² + eps) where the weight is 1; x² is below any epsilon in use."""
    definition, x = conftest.definition_of(test), 2.0**-20
    hidden, weight, _ = layernorm_parts(definition)
    inputs = layernorm_inputs(definition, test.SIZES[0].axes)
    inputs = {name: torch.zeros_like(value) for name, value in inputs.items()}
    inputs[hidden][..., 0::2], inputs[hidden][..., 1::2] = x, -x
    inputs[weight] += 1.0
    y = conftest.run_reference(test, inputs)[0].double().abs().mean().item()
    return {"eps": conftest.round_constant((x / y) ** 2 - x**2 if y else 0.0)}


def layernorm_torch(test, inputs):
    """layer_norm in float64."""
    definition = conftest.definition_of(test)
    names = layernorm_parts(definition)
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    eps = scalars[0] if scalars else conftest.need_constant(test, "eps")
    x, w, b = (inputs[name].double() if name else None for name in names)
    (output,) = definition["outputs"].values()
    normed = torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, eps)
    return normed.to(conftest.dtype_of(output))


# definition: "layernorm_h1152"
class TestLayernormH1152:
    OP_TYPE = "layernorm"
    NAME = "layernorm_h1152"
    VARIANT = 0  # of op family layernorm
    HIDDEN_SIZE = 1152
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=128),
        conftest.size("medium", batch_size=513),
        conftest.size("large", batch_size=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (5e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        layernorm_flashinfer,
        layernorm_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, weight, bias):
    rows = hidden_states.float()
    centred = rows - rows.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    normed = centred * torch.rsqrt(variance + EPSILON)
    return (normed * weight + bias).to(hidden_states.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return layernorm_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "layernorm_h768"
class TestLayernormH768:
    OP_TYPE = "layernorm"
    NAME = "layernorm_h768"
    VARIANT = 0  # of op family layernorm
    HIDDEN_SIZE = 768
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-05  # description
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=256),
        conftest.size("medium", batch_size=513),
        conftest.size("large", batch_size=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (5e-05, 1e-05, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        layernorm_flashinfer,
        layernorm_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(hidden_states, weight, bias):
    return F.layer_norm(hidden_states, hidden_states.shape[-1:], weight, bias, eps=1e-5)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return layernorm_inputs(conftest.definition_of(cls), axes, device, seed)

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
