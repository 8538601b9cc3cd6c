# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 03dcb1269bda5959f3ff38daa9e2f326
"""Tests of definitions/mamba_ssu. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def mamba_ssu_part(name, spec):
    """What an input is: by its kind, and of the floats of a token and of the weights by its name."""
    if spec["shape"] is None:
        return "softplus" if "softplus" in name else "pad"
    if "int" in spec["dtype"]:
        return "indices"
    return "state" if len(spec["shape"]) == 4 else name


def mamba_ssu_parts(definition, values):
    """Values of inputs by part."""
    specs = definition["inputs"]
    return {mamba_ssu_part(name, spec): values[name] for name, spec in specs.items()}


def mamba_ssu_values(part, shape, tied, generator):
    """Floats of one input; tied: the same along a head."""
    head = {"dt": 2, "A": 1, "D": 1, "dt_bias": 1}.get(part)
    drawn = shape[:head] if tied and head else shape
    values = conftest.noise(drawn, torch.float32, "cpu", generator)
    values = values.view(*drawn, *[1] * (len(shape) - len(drawn))).expand(shape)
    if part == "A":
        return -(values + 1.0625)
    values = values * {"dt": 2, "dt_bias": 2, "D": 4, "z": 4}.get(part, 1)
    if part == "dt":
        batch, heads = shape[:2]
        kind = 7 * torch.arange(batch)[:, None] + 3 * torch.arange(heads)
        values[kind % 32 == 5] = -24.0
        values[kind % 32 == 21] = 96.0
    return values


def mamba_ssu_inputs(definition, axes, device="cpu", seed=0):
    """Steps where softplus bends, some of them 0 or large; states in every slot, whether a sequence has it or not; slots
    in no order, every eighth sequence padding. Other libraries take one A, D and step for a head, so that is what
    batches of an even size have; in the others each element has its own, which shows what is transposed."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    parts = mamba_ssu_parts(definition, {name: name for name in specs})
    slots = conftest.shape_of(specs[parts["state"]], sizes)[0]
    batch = conftest.shape_of(specs[parts["x"]], sizes)[0]
    if slots < batch:
        raise conftest.Unavailable(f"{slots} slots do not hold {batch} sequences")
    inputs, pad = {}, axes.get(parts.get("pad"), -1)
    for name, spec in specs.items():
        part = mamba_ssu_part(name, spec)
        if spec["shape"] is None:
            inputs[name] = {"softplus": True, "pad": pad}[part]
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if part == "indices":
            values = torch.randperm(slots, generator=generator)[:batch]
            values[3::8] = pad
        else:
            values = mamba_ssu_values(part, shape, batch % 2 == 0, generator)
        inputs[name] = values.to(dtype).to(device)
    return inputs


def mamba_ssu_edges(definition, axes):
    """No sequence, and one."""
    parts = mamba_ssu_parts(definition, definition["inputs"])
    return [{**axes, parts["x"]["shape"][0]: count} for count in (0, 1)]


def mamba_ssu_tolerance(definition, axes, index):
    """Kernels sum over the state in float32, in another order."""
    sizes = conftest.resolve_axes(definition, axes)
    spec = list(definition["outputs"].values())[index]
    states = conftest.shape_of(definition["inputs"]["B"], sizes)[-1]
    atol = 1e-5 if len(spec["shape"]) == 4 else 2e-6 * states
    return atol, 1e-5 if spec["dtype"] == "float32" else 8e-3, 1.0


def mamba_ssu_tied(value, lead, shape):
    """A view of that shape with one value for each head, which the first `lead` axes count."""
    if value is None:
        return None
    flat = value.reshape(*value.shape[:lead], -1)
    if (flat != flat[..., :1]).any():
        raise NotImplementedError("it takes one A, D and step for a head")
    return flat[..., 0].view(*shape[:lead], *[1] * (len(shape) - lead)).expand(shape)


def mamba_ssu_call(test, inputs, update):
    """FlashInfer's call and SGLang's have the same words."""
    definition = conftest.definition_of(test)
    given = mamba_ssu_parts(definition, inputs)
    x, state, indices = given["x"], given["state"], given.get("indices")
    if len(x) == 0:
        raise NotImplementedError("it takes no empty batch")
    heads = state.shape[1:3]
    steps = [given["dt"], given.get("D"), given.get("dt_bias")]
    if steps[1] is None:
        steps[1] = torch.zeros(heads[0], device=x.device)
    # FlashInfer takes one dtype for the three of them.
    dtypes = {value.dtype for value in steps if value is not None}
    wide = dtypes.pop() if len(dtypes) == 1 else torch.float32
    dt, skip, bias = (None if value is None else value.to(wide) for value in steps)
    pad, output = given.get("pad", -1), torch.zeros_like(x)
    update(
        state,
        x,
        mamba_ssu_tied(dt, 2, x.shape),
        mamba_ssu_tied(given["A"], 1, state.shape[1:]),
        given["B"],
        given["C"],
        D=mamba_ssu_tied(skip, 1, heads),
        z=given.get("z"),
        dt_bias=mamba_ssu_tied(bias, 1, heads),
        dt_softplus=given.get("softplus", True),
        state_batch_indices=indices,
        pad_slot_id=pad,
        out=output,
    )
    if indices is not None:
        output[indices == pad] = 0
    outputs = definition["outputs"].values()
    return tuple(state if len(spec["shape"]) == 4 else output for spec in outputs)


def mamba_ssu_flashinfer(test, inputs):
    module = conftest.need("flashinfer.mamba", conftest.device_of(inputs))
    parts = mamba_ssu_parts(conftest.definition_of(test), inputs)
    dim = parts["state"].shape[2]
    if dim < 64:
        raise NotImplementedError(f"it takes heads of 64 and more, not of {dim}")
    return mamba_ssu_call(test, inputs, module.selective_state_update)


def mamba_ssu_sglang(test, inputs):
    path = "sglang.kernels.ops.mamba.triton_ops.mamba_ssm"
    module = conftest.need(path, conftest.device_of(inputs))
    return mamba_ssu_call(test, inputs, module.selective_state_update)


# definition: "mamba_ssu_decode_gated_h16_d64_s128_ng4"
class TestMambaSsuDecodeGatedH16D64S128Ng4:
    OP_TYPE = "mamba_ssu"
    NAME = "mamba_ssu_decode_gated_h16_d64_s128_ng4"
    VARIANT = 0  # of op family mamba_ssu
    NHEADS = 16
    HEAD_DIM = 64
    DSTATE = 128
    NGROUPS = 4
    AXES = conftest.constants(
        batch_size=None,
        state_cache_size=None,
        nheads=NHEADS,
        head_dim=HEAD_DIM,
        dstate=DSTATE,
        ngroups=NGROUPS,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        state="new_state",
    )
    SIZES = (
        conftest.size("small", batch_size=1, state_cache_size=3),
        conftest.size("small", batch_size=5, state_cache_size=8),
        conftest.size("medium", batch_size=33, state_cache_size=41),
        conftest.size("large", batch_size=256, state_cache_size=512),
    )
    SCALARS = conftest.constants(
        dt_softplus=[
            True,
            False,
            True,
            True,
        ],
        pad_slot_id=[
            -1,
            -7,
            -1,
            -1,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.0027621358640099515, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        mamba_ssu_flashinfer,
        mamba_ssu_sglang,
    )
    TOLERANCE = staticmethod(mamba_ssu_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(state, x, dt, A, B, C, D, z, dt_bias, state_batch_indices, dt_softplus, pad_slot_id):
    heads, groups = x.shape[1], B.shape[1]
    output = torch.zeros_like(x)
    for i, slot in enumerate(state_batch_indices.tolist()):
        if slot == pad_slot_id:
            continue
        step = dt[i].float() + dt_bias
        if dt_softplus:
            step = F.softplus(step)
        token = x[i].float()
        weight_in, weight_out = B[i].float(), C[i].float()
        for h in range(heads):
            g = h // (heads // groups)
            held = state[slot, h] * torch.exp(A[h] * step[h])
            held = held + step[h] * torch.outer(token[h], weight_in[g])
            y = held @ weight_out[g] + D[h] * token[h]
            state[slot, h] = held
            if z is not None:
                y = y * F.silu(z[i, h].float())
            output[i, h] = y.to(x.dtype)
    return output, state
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return mamba_ssu_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, mamba_ssu_edges)
    )
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


# definition: "mamba_ssu_decode_h32_d64_s128_ng2"
class TestMambaSsuDecodeH32D64S128Ng2:
    OP_TYPE = "mamba_ssu"
    NAME = "mamba_ssu_decode_h32_d64_s128_ng2"
    VARIANT = 0  # of op family mamba_ssu
    NHEADS = 32
    HEAD_DIM = 64
    DSTATE = 128
    NGROUPS = 2
    AXES = conftest.constants(
        batch_size=None,
        state_cache_size=None,
        nheads=NHEADS,
        head_dim=HEAD_DIM,
        dstate=DSTATE,
        ngroups=NGROUPS,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        state="new_state",
    )
    SIZES = (
        conftest.size("small", batch_size=1, state_cache_size=3),
        conftest.size("small", batch_size=5, state_cache_size=8),
        conftest.size("medium", batch_size=33, state_cache_size=41),
        conftest.size("large", batch_size=256, state_cache_size=512),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (0.0027621358640099515, 0.01, 1.0),
        ],
        [  # new_state
            (1.52587890625e-05, 0.01, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        mamba_ssu_flashinfer,
        mamba_ssu_sglang,
    )
    TOLERANCE = staticmethod(mamba_ssu_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch
import torch.nn.functional as F


@torch.no_grad()
def run(state, x, dt, A, B, C, D, dt_bias, state_batch_indices):
    sharing = x.shape[1] // B.shape[1]
    slots = state_batch_indices.long()
    active = slots >= 0
    step = F.softplus(dt.float() + dt_bias.float())
    weight_in = B.float().repeat_interleave(sharing, dim=1)
    weight_out = C.float().repeat_interleave(sharing, dim=1)

    held = state[slots.clamp(min=0)].float() * torch.exp(A * step[..., None])
    held = held + (step * x.float())[..., None] * weight_in[:, :, None, :]
    y = (held * weight_out[:, :, None, :]).sum(dim=-1) + D.float() * x.float()

    new_state = state.clone()
    new_state[slots[active]] = held[active].to(state.dtype)
    return torch.where(active[:, None, None], y, 0).to(x.dtype), new_state
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return mamba_ssu_inputs(conftest.definition_of(cls), axes, device, seed)

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

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, mamba_ssu_edges)
    )
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
