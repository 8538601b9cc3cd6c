# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 665a43fe453d12a950196e40988ebad2
"""Tests of definitions/gemma_rmsnorm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def rms_roles(definition):
    """Names of hidden states, residual (None without one) and weight: the weight has one axis, or comes last."""
    tensors = conftest.tensor_inputs(definition)
    flat = [name for name in tensors if len(definition["inputs"][name]["shape"]) == 1]
    weight = flat[-1]
    rows = [name for name in tensors if name != weight]
    rows.sort(key=lambda name: "resid" in name)
    return rows[0], rows[1] if len(rows) > 1 else None, weight


def rms_inputs(definition, axes, device, seed, offset):
    """Noise, and rows that show mistakes: one so small that epsilon counts, one of zeros, one with a mean, a huge one,
    one with a single large element. Weights, to which `offset` is added, are on both sides of 0."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 4e-6
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if name == rms_roles(definition)[2]:
            values = values if offset else values + values.sign()
        else:
            rows = values.view(-1, shape[-1])
            scales = (0.001, 0.0, 1.0, 1000.0, 1.0)
            for row, scale in zip(rows, scales, strict=False):
                row *= scale
            if len(rows) > 2:
                rows[2] += 1.0
            if len(rows) > 4:
                rows[4, -1] = 100.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def rms_sum_first(definition):
    """Does the sum with the residual come before what is normed? If names say so; the second output is it otherwise."""
    first, *second = definition["outputs"]
    return bool(second) and "resid" in first and "resid" not in second[0]


def rms_outputs(definition, normed, total):
    """In the definition's order, as many as it has."""
    outputs = (total, normed) if rms_sum_first(definition) else (normed, total)
    return outputs[: len(definition["outputs"])]


def rms_epsilon(test, inputs):
    scalars = [value for value in inputs.values() if isinstance(value, float)]
    return scalars[0] if scalars else conftest.need_constant(test, "eps")


def rms_call(test, inputs, plain, fused_in_place):
    definition = conftest.definition_of(test)
    hidden, residual, weight = rms_roles(definition)
    x, w, eps = inputs[hidden], inputs[weight], rms_epsilon(test, inputs)
    flat = x.contiguous().view(-1, x.shape[-1])
    if residual is None:
        return plain(flat, w, eps).view(x.shape)
    total = inputs[residual].contiguous().view(flat.shape)
    fused_in_place(flat, total, w, eps)
    return rms_outputs(definition, flat.view(x.shape), total.view(x.shape))


def rms_probe(test, offset):
    """Rows of x answer with x / sqrt(x² + eps) where the weight counts for 1; x² is below any epsilon in use."""
    definition, x = conftest.definition_of(test), 2.0**-20
    hidden, _, weight = rms_roles(definition)
    inputs = rms_inputs(definition, test.SIZES[0].axes, "cpu", 0, offset)
    inputs = {name: torch.zeros_like(value) for name, value in inputs.items()}
    inputs[hidden] += x
    inputs[weight] += 1.0 - offset
    normed = conftest.run_reference(test, inputs)[rms_sum_first(definition)]
    y = normed.double().mean().item()
    return {"eps": conftest.round_constant((x / y) ** 2 - x**2 if y else 0.0)}


def rms_torch(test, inputs, offset):
    """rms_norm in float64; a residual is added first, and its sum not rounded."""
    definition = conftest.definition_of(test)
    hidden, residual, weight = rms_roles(definition)
    total = inputs[hidden].double()
    total = total if residual is None else total + inputs[residual].double()
    w, eps = inputs[weight].double() + offset, rms_epsilon(test, inputs)
    normed = torch.nn.functional.rms_norm(total, w.shape, w, eps)
    specs = definition["outputs"].values()
    pairs = zip(rms_outputs(definition, normed, total), specs, strict=True)
    return [x.to(conftest.dtype_of(spec)) for x, spec in pairs]


def gemma_rmsnorm_inputs(definition, axes, device="cpu", seed=0):
    return rms_inputs(definition, axes, device, seed, 1)


def gemma_rmsnorm_flashinfer(test, inputs):
    norm = conftest.need("flashinfer.norm", conftest.device_of(inputs))
    return rms_call(test, inputs, norm.gemma_rmsnorm, norm.gemma_fused_add_rmsnorm)


def gemma_rmsnorm_sglang(test, inputs):
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return rms_call(test, inputs, kernel.gemma_rmsnorm, kernel.gemma_fused_add_rmsnorm)


def gemma_rmsnorm_probe(test):
    return rms_probe(test, 1)


def gemma_rmsnorm_torch(test, inputs):
    return rms_torch(test, inputs, 1)


# definition: "gemma_fused_add_rmsnorm_h4608"
class TestGemmaFusedAddRmsnormH4608:
    OP_TYPE = "gemma_rmsnorm"
    NAME = "gemma_fused_add_rmsnorm_h4608"
    VARIANT = 1  # of op family gemma_rmsnorm
    HIDDEN_SIZE = 4608
    AXES = conftest.constants(
        batch_size=None,
        hidden_size=HIDDEN_SIZE,
    )
    EPS = 1e-06  # model:gemma-2-27b
    CONSTANTS = conftest.constants(
        eps=EPS,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=321),
        conftest.size("large", batch_size=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
        [  # residual_out
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gemma_rmsnorm_flashinfer,
        gemma_rmsnorm_sglang,
        gemma_rmsnorm_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, residual, weight):
    # The sum is normed before it is rounded: only what leaves the function is bfloat16.
    rows = hidden_states.float() + residual.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    output = rows * torch.rsqrt(mean_square + EPSILON) * (1 + weight.float())
    return output.to(hidden_states.dtype), rows.to(residual.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemma_rmsnorm_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "gemma_rmsnorm_h5376"
class TestGemmaRmsnormH5376:
    OP_TYPE = "gemma_rmsnorm"
    NAME = "gemma_rmsnorm_h5376"
    VARIANT = 0  # of op family gemma_rmsnorm
    HIDDEN_SIZE = 5376
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
        conftest.size("small", batch_size=32),
        conftest.size("medium", batch_size=321),
        conftest.size("large", batch_size=16384),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (1.1754943508222875e-38, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        gemma_rmsnorm_flashinfer,
        gemma_rmsnorm_sglang,
        gemma_rmsnorm_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch

EPSILON = 1e-6


@torch.no_grad()
def run(hidden_states, weight):
    rows = hidden_states.float()
    mean_square = rows.square().mean(dim=-1, keepdim=True)
    normed = rows * torch.rsqrt(mean_square + EPSILON)
    return (normed * (1 + weight.float())).to(hidden_states.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return gemma_rmsnorm_inputs(conftest.definition_of(cls), axes, device, seed)

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
