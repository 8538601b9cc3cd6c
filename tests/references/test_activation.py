# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 64708bf605f16bf1a729c551a7282b6d
"""Tests of definitions/activation. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def activation_inputs(definition, axes, device="cpu", seed=0):
    """Gates on [-8, 8), where silu, gelu and its tanh form are told apart, zeros among them; what they gate on [-2, 2)."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator) * 2
        gates = values[..., : shape[-1] // 2]
        gates *= 4
        gates[torch.randint(0, 16, gates.shape, generator=generator) == 0] = 0.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def activation_kind(definition):
    """The kernel's name. Nothing but the definition's name says which it is; else its fi_api tag, and its op_type."""
    tags = [tag for tag in definition.get("tags", []) if tag.startswith("fi_api:")]
    words = [definition["name"], *tags, definition["op_type"]]
    kinds = {
        "gelu_tanh": "gelu_tanh_and_mul",
        "geglu_tanh": "gelu_tanh_and_mul",
        "gelu": "gelu_and_mul",
        "geglu": "gelu_and_mul",
        "silu": "silu_and_mul",
        "swiglu": "silu_and_mul",
    }
    for text in words:
        for word, kind in kinds.items():
            if word in text:
                return kind
    raise NotImplementedError(f"nothing says which activation {definition['name']} is")


def activation_call(test, inputs, module):
    (x,) = inputs.values()
    if x.dtype == torch.float32:
        raise NotImplementedError("it takes float16 and bfloat16")
    return getattr(module, activation_kind(conftest.definition_of(test)))(
        x.contiguous()
    )


def activation_flashinfer(test, inputs):
    module = conftest.need("flashinfer.activation", conftest.device_of(inputs))
    return activation_call(test, inputs, module)


def activation_sglang(test, inputs):
    module = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return activation_call(test, inputs, module)


def activation_torch(test, inputs):
    """silu or gelu of the first half, in float64, times the second."""
    (x,), definition = inputs.values(), conftest.definition_of(test)
    gate, value = x.double().chunk(2, dim=-1)
    functional, kind = torch.nn.functional, activation_kind(definition)
    if kind == "silu_and_mul":
        gate = functional.silu(gate)
    else:
        form = "tanh" if kind == "gelu_tanh_and_mul" else "none"
        gate = functional.gelu(gate, approximate=form)
    (output,) = definition["outputs"].values()
    return (gate * value).to(conftest.dtype_of(output))


# definition: "gelu_and_mul_h5120"
class TestGeluAndMulH5120:
    OP_TYPE = "activation"
    NAME = "gelu_and_mul_h5120"
    VARIANT = 1  # of op family activation
    GATE_AND_UP_SIZE = 10240
    INTERMEDIATE_SIZE = 5120
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=129),
        conftest.size("large", num_tokens=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.00146484375, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        activation_flashinfer,
        activation_sglang,
        activation_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import math

import torch


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    share = 0.5 * (1 + torch.erf(gate / math.sqrt(2)))
    return (gate * share * up).to(input.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return activation_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "gelu_tanh_and_mul_h21504"
class TestGeluTanhAndMulH21504:
    OP_TYPE = "activation"
    NAME = "gelu_tanh_and_mul_h21504"
    VARIANT = 2  # of op family activation
    GATE_AND_UP_SIZE = 43008
    INTERMEDIATE_SIZE = 21504
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=65),
        conftest.size("large", num_tokens=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        activation_flashinfer,
        activation_sglang,
        activation_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.gelu(gate, approximate="tanh") * up).to(input.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return activation_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "silu_and_mul_h14336"
class TestSiluAndMulH14336:
    OP_TYPE = "activation"
    NAME = "silu_and_mul_h14336"
    VARIANT = 0  # of op family activation
    GATE_AND_UP_SIZE = 28672
    INTERMEDIATE_SIZE = 14336
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=16),
        conftest.size("medium", num_tokens=65),
        conftest.size("large", num_tokens=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        activation_flashinfer,
        activation_sglang,
        activation_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(input):
    gate, up = input.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(input.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return activation_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "silu_and_mul_h2048"
class TestSiluAndMulH2048:
    OP_TYPE = "activation"
    NAME = "silu_and_mul_h2048"
    VARIANT = 0  # of op family activation
    GATE_AND_UP_SIZE = 4096
    INTERMEDIATE_SIZE = 2048
    AXES = conftest.constants(
        num_tokens=None,
        gate_and_up_size=GATE_AND_UP_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", num_tokens=1),
        conftest.size("small", num_tokens=64),
        conftest.size("medium", num_tokens=321),
        conftest.size("large", num_tokens=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (2e-06, 0.01171875, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        activation_flashinfer,
        activation_sglang,
        activation_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(input):
    half = input.shape[-1] // 2
    gate, up = input[..., :half].float(), input[..., half:].float()
    output = gate * torch.sigmoid(gate) * up
    return output.to(input.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return activation_inputs(conftest.definition_of(cls), axes, device, seed)

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
