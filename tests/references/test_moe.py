# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 4c29ef490577bc7e040cafb73161f51d
"""Tests of definitions/moe. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def moe_part(name):
    """What an input is, by its name."""
    words = {
        "offset": "offset",
        "routed_scaling": "factor",
        "bias": "bias",
        "logits": "logits",
        "topk_ids": "ids",
        "topk_weights": "id_weights",
        "top_k": "top_k",
        "topk_group": "topk_group",
        "n_group": "n_group",
        "hidden_states_scale": "hidden_scale",
        "hidden": "hidden",
        "gemm1_weights_scale": "scale1",
        "gemm2_weights_scale": "scale2",
        "gemm1_weights": "weights1",
        "gemm2_weights": "weights2",
        "output1_scales_gate": "factor_gate",
        "output1_scales": "factor_up",
        "output2_scales": "factor_down",
    }
    for word, part in words.items():
        if word in name:
            return part
    raise conftest.Unavailable(f"what '{name}' is in a mixture of experts")


def moe_routing(definition):
    """How many experts a token goes to, of how many groups, of which how many are kept; and "deepseek", "renormalise",
    "llama4" or "given": as axes, names and tags have it."""
    name = definition["name"]
    numbers = {"topk": definition["axes"].get("top_k", {}).get("value")}
    for word in name.split("_"):
        key = word.rstrip("0123456789")
        if word != key:
            numbers[key] = numbers.get(key) or int(word[len(key) :])
    parts = [moe_part(name) for name in definition["inputs"]]
    words = " ".join([name, definition.get("description", "")]).lower()
    if "ids" in parts:
        method = "given"
    elif "factor" in parts or "ds_routing" in words:
        method = "deepseek"
    elif numbers["topk"] == 1 or "llama" in words:
        method = "llama4"
    else:
        method = "renormalise"
    if numbers["topk"] is None:
        raise conftest.Unavailable(f"how many experts a token of {name} goes to")
    return numbers["topk"], numbers.get("ng", 1), numbers.get("kg", 1), method


def moe_choose(definition, logits, bias, factor):
    """Experts of each token, the weights of their answers, and how far the nearest choice was from going another way."""
    top_k, groups, kept, method = moe_routing(definition)
    logits = logits.double()
    if method != "deepseek":
        best = logits.topk(min(top_k + 1, logits.shape[1]))
        margin = -best.values.diff().amax(1)
        ids, values = best.indices[:, :top_k], best.values[:, :top_k]
        weights = values.sigmoid() if method == "llama4" else values.softmax(-1)
        return ids, weights, margin
    scores = logits.sigmoid()
    ranked = scores + bias.double()
    margin = torch.full_like(ranked[:, 0], torch.inf)
    if groups > 1:
        best = ranked.unflatten(1, (groups, -1)).topk(2).values.sum(-1)
        order = best.sort(descending=True)
        if kept < groups:
            margin = order.values[:, kept - 1] - order.values[:, kept]
        dropped = torch.ones_like(best, dtype=torch.bool)
        dropped.scatter_(1, order.indices[:, :kept], False)
        dropped = dropped.repeat_interleave(ranked.shape[1] // groups, 1)
        ranked = ranked.masked_fill(dropped, -torch.inf)
    best = ranked.topk(min(top_k + 1, ranked.shape[1]))
    if best.values.shape[1] > top_k:
        margin = margin.minimum(best.values[:, top_k - 1] - best.values[:, top_k])
    ids = best.indices[:, :top_k]
    weights = scores.gather(1, ids)
    return ids, weights / weights.sum(1, keepdim=True) * factor, margin


def moe_logits(definition, tokens, experts, local, offset, bias, generator):
    """A quarter apart around the boundary, and no choice near. The first expert of seven tokens in eight is one that is
    here; every fourth token shares a favourite."""
    rank = torch.arange(experts)
    depth = torch.where(rank < 16, rank / 4, 4 + (rank - 16) / 32)
    logits = torch.empty(tokens, experts)
    todo = torch.arange(tokens)
    for _ in range(64):
        for t in todo.tolist():
            order = torch.randperm(experts, generator=generator)
            if t % 8 != 7 or local == experts:
                mine = torch.randint(local, (), generator=generator).item()
                mine = offset + (0 if t % 4 == 1 else mine)
                place = (order == mine).nonzero().item()
                order[place], order[0] = order[0].item(), mine
            logits[t, order] = 2 - t % 3 - depth
        margin = moe_choose(definition, logits[todo], bias, 1.0)[2]
        todo = todo[margin < 2**-13]
        if len(todo) == 0:
            break
    return logits


def moe_spread(scales, shape):
    """A scale for every element of that shape: each counts for a block."""
    for axis, (count, length) in enumerate(zip(scales.shape, shape, strict=True)):
        scales = scales.repeat_interleave(length // max(count, 1), axis)
    return scales


def moe_quantised(shape, blocks, size, generator):
    """Codes and scales, as models are quantised: the largest of every block is 448. Blocks differ in size."""
    spread = 2.0 ** conftest.noise(blocks, torch.float32, "cpu", generator)
    values = conftest.noise(shape, torch.float32, "cpu", generator)
    values *= moe_spread(spread, shape) * size
    lengths = [
        x for n, b in zip(shape, blocks, strict=True) for x in (b, n // max(b, 1) or 1)
    ]
    largest = values.abs().view(lengths).amax((1, 3))
    scales = largest.clamp(min=1e-12) / 448
    return (values / moe_spread(scales, shape)).to(torch.float8_e4m3fn), scales


def moe_made(shape, blocks, dtype, size, generator):
    """Values of that size, or with blocks: codes and their scales. Experts have the same numbers in other places, moved by
    whole blocks, and scales of their own: to draw the weights of each anew takes minutes."""
    if len(shape) == 2 and blocks:
        return moe_quantised(shape, blocks, size, generator)
    if len(shape) == 2:
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        return (values * size).to(dtype), None
    count, rows, columns = shape
    own = blocks[1:] if blocks else shape[1:]
    first, scales = moe_made(shape[1:], blocks and own, dtype, size, generator)
    every = torch.empty(shape, dtype=dtype)
    raw = torch.uint8 if dtype.itemsize == 1 else dtype  # 8-bit floats do not roll
    every_scale = torch.empty(blocks) if blocks else None
    for e in range(count):
        down, right = e % own[0], e // own[0] % own[1]
        moved = down * (rows // own[0]), right * (columns // own[1])
        every.view(raw)[e] = first.view(raw).roll(moved, (0, 1))
        if blocks:
            factor = 2.0 ** conftest.noise((), torch.float32, "cpu", generator)
            every_scale[e] = scales.roll((down, right), (0, 1)) * factor
    return every, every_scale


def moe_scaled(parts, shapes, codes, scales, size, generator):
    """Hidden states or weights of that size, with their scales if they have any."""
    shape, dtype = shapes[codes], conftest.dtype_of(parts[codes])
    if scales not in parts:
        return {codes: moe_made(shape, None, dtype, size, generator)[0]}
    blocks = shapes[scales]
    turned = parts[scales]["shape"][-1] == parts[codes]["shape"][0]  # [blocks, T]
    blocks = blocks[::-1] if turned else blocks
    values, found = moe_made(shape, blocks, dtype, size, generator)
    return {codes: values, scales: found.T.contiguous() if turned else found}


def moe_factor():
    """What DeepSeek's routing multiplies weights by, as its models have it."""
    return 2.5


def moe_inputs(definition, axes, device="cpu", seed=0):
    """Sized such that products neither vanish nor saturate; no choice of experts is near another, so that no rounding
    decides. Of experts that are elsewhere each token has some, and one in eight has only them."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    names = {moe_part(name): name for name in specs}
    parts = {part: specs[name] for part, name in names.items()}
    shapes = {
        part: conftest.shape_of(spec, sizes)
        for part, spec in parts.items()
        if spec["shape"] is not None
    }
    top_k, groups, kept, _ = moe_routing(definition)
    (tokens, hidden), (local, _, inner) = shapes["hidden"], shapes["weights2"]
    experts = shapes["logits"][1] if "logits" in parts else local
    offset = (experts - local) // 2
    values = {"factor": moe_factor(), "offset": offset}
    values |= {"top_k": top_k, "n_group": groups, "topk_group": kept}
    single = "factor_up" in parts  # one factor an expert stands for the size of weights
    size1, size2 = 3.6 * hidden**-0.5, 1.8 * inner**-0.5
    values |= moe_scaled(parts, shapes, "hidden", "hidden_scale", 1.0, generator)
    for codes, scales, size in (
        ("weights1", "scale1", size1),
        ("weights2", "scale2", size2),
    ):
        size = 1.0 if single else size
        values |= moe_scaled(parts, shapes, codes, scales, size, generator)
    for part, size in (
        ("factor_up", size1),
        ("factor_gate", size1),
        ("factor_down", size2),
    ):
        if part in parts:
            factors = torch.rand(shapes[part], generator=generator)
            values[part] = (factors + 0.5) * size
    bias = torch.zeros(experts)
    if "bias" in parts:
        bias = torch.randint(-64, 64, (experts,), generator=generator) / 256
        values["bias"] = bias
    if "logits" in parts:
        values["logits"] = moe_logits(
            definition, tokens, experts, local, offset, bias, generator
        )
    if "ids" in parts:
        order = torch.rand(tokens, experts, generator=generator).argsort(1)
        weights = torch.randint(1, 129, shapes["ids"], generator=generator) / 128
        packed = weights.to(torch.bfloat16).view(torch.int16).int() & 0xFFFF
        ids = order[:, : shapes["ids"][1]]
        values["ids"] = ids if "id_weights" in parts else ids << 16 | packed
        values["id_weights"] = weights
    inputs = {}
    for part, name in names.items():
        value, spec = values[part], specs[name]
        if spec["shape"] is not None:
            value = value.to(conftest.dtype_of(spec)).to(device)
        inputs[name] = value
    return inputs


def moe_tolerance(definition, axes, index):
    """Kernels round what goes into the second product to 8 bits, 3 % an element, of answers around 1: DeepSeek's factor
    makes them larger."""
    parts = [moe_part(name) for name in definition["inputs"]]
    return 0.1 * (moe_factor() if "factor" in parts else 1.0), 0.05, 0.98


def moe_parts(definition, inputs):
    """Inputs by part; "blocks_first": scales of hidden states are [blocks, T]."""
    parts = {moe_part(name): inputs[name] for name in definition["inputs"]}
    axes = {
        moe_part(name): spec["shape"] for name, spec in definition["inputs"].items()
    }
    scales = axes.get("hidden_scale")
    return parts | {"blocks_first": scales and scales[-1] == axes["hidden"][0]}


def moe_picks(definition, parts):
    """Experts of this device and float32 weights, [T, K] each: 0 and 0 for an expert that is elsewhere."""
    if "ids" in parts:
        ids, weights = parts["ids"].long(), parts.get("id_weights")
        if weights is None:
            weights = (ids & 0xFFFF).to(torch.int16).view(torch.bfloat16)
            ids = ids >> 16
    else:
        factor, bias = parts.get("factor"), parts.get("bias")
        ids, weights, _ = moe_choose(definition, parts["logits"], bias, factor)
    ids = ids - parts.get("offset", 0)
    here = (ids >= 0) & (ids < len(parts["weights1"]))
    return torch.where(here, ids, 0), torch.where(here, weights.float(), 0.0)


def moe_hidden(parts):
    """Hidden states in bfloat16, which holds what their codes and scales stand for to one part in 256."""
    hidden = parts["hidden"].float()
    if "hidden_scale" in parts:
        scale = parts["hidden_scale"]
        scale = scale.T if parts["blocks_first"] else scale
        hidden = hidden * moe_spread(scale, hidden.shape)
    return hidden.bfloat16()


def moe_weights(parts):
    """Both weights in bfloat16, with their factors."""
    first, second = parts["weights1"].float(), parts["weights2"].float()
    if "scale1" in parts:
        first = first * moe_spread(parts["scale1"], first.shape)
        second = second * moe_spread(parts["scale2"], second.shape)
    if "factor_up" in parts:
        up, gate = first.chunk(2, 1)
        up = up * parts["factor_up"][:, None, None]
        gate = gate * parts["factor_gate"][:, None, None]
        first = torch.cat([up, gate], 1)
        second = second * parts["factor_down"][:, None, None]
    return first.bfloat16(), second.bfloat16()


def moe_is_block_scaled(parts):
    """Does a scale count for 128 x 128 weights, as kernels for 8 bits want it?"""
    if "scale1" not in parts or "hidden_scale" not in parts:
        return False
    pairs = ((parts["weights1"], parts["scale1"]), (parts["weights2"], parts["scale2"]))
    return all(
        (w.shape[1] // s.shape[1], w.shape[2] // s.shape[2]) == (128, 128)
        for w, s in pairs
    )


def moe_flashinfer(test, inputs):
    """On Blackwell the kernel that the definition's tag names. On Hopper the one that takes chosen experts: with weights
    of 8 bits and their scales, else with weights in bfloat16. The order of halves is the definition's in both."""
    definition, device = conftest.definition_of(test), conftest.device_of(inputs)
    module = conftest.need("flashinfer.fused_moe", device)
    major = conftest.need_capability(device, 9)
    parts = moe_parts(definition, inputs)
    top_k, groups, kept, method = moe_routing(definition)
    if len(parts["hidden"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    scaled = moe_is_block_scaled(parts)
    if major == 10 and scaled and "logits" in parts:
        return module.trtllm_fp8_block_scale_moe(
            parts["logits"],
            parts.get("bias"),
            parts["hidden"],
            parts["hidden_scale"],
            parts["weights1"],
            parts["scale1"],
            parts["weights2"],
            parts["scale2"],
            num_experts=parts["logits"].shape[1],
            top_k=top_k,
            n_group=groups if groups > 1 else None,
            topk_group=kept if groups > 1 else None,
            intermediate_size=parts["weights2"].shape[2],
            local_expert_offset=parts.get("offset", 0),
            local_num_experts=len(parts["weights1"]),
            routed_scaling_factor=parts.get("factor"),
            routing_method_type=2 if method == "deepseek" else 1,
            use_shuffled_weight=False,
        )
    if method == "llama4":
        raise NotImplementedError("it weights what comes out, not what goes in")
    ids, weights = moe_picks(definition, parts)
    scaled = scaled and major == 9
    first, second = moe_weights(parts)
    if scaled:
        first, second = parts["weights1"], parts["weights2"]
    result = module.cutlass_fused_moe(
        moe_hidden(parts),
        ids.int(),
        weights,
        first,
        second,
        torch.bfloat16,
        quant_scales=[parts["scale1"], parts["scale2"]] if scaled else None,
        use_deepseek_fp8_block_scale=scaled,
    )
    return result[0] if isinstance(result, (list, tuple)) else result


class MoeGroupOfOne:
    world_size = 1


def moe_without_server(device):
    """SGLang's layers ask the configuration and the group of ranks of a server, of which none is started here."""
    runtime = conftest.need("sglang.srt.runtime_context", device)
    arguments = conftest.need("sglang.srt.server_args", device)
    if not runtime.get_context().is_config_namespace_published("exec"):
        defaults = arguments.ServerArgs(model_path="none")
        runtime.get_context().set_server_args(defaults)
    return runtime.get_parallel().override(tp_group=MoeGroupOfOne())


def moe_sglang(test, inputs):
    """The gate's half of the first weights comes first there."""
    definition, device = conftest.definition_of(test), conftest.device_of(inputs)
    layers = "sglang.srt.layers.moe"
    module = conftest.need(f"{layers}.moe_runner.triton_utils.fused_moe", device)
    runner = conftest.need(f"{layers}.moe_runner.base", device)
    topk = conftest.need(f"{layers}.topk", device)
    parts = moe_parts(definition, inputs)
    if len(parts["hidden"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    ids, weights = moe_picks(definition, parts)
    scaled = moe_is_block_scaled(parts)
    first, second = moe_weights(parts)
    words = {}
    if scaled:
        first, second = parts["weights1"], parts["weights2"]
        scale = torch.cat(parts["scale1"].chunk(2, 1)[::-1], 1)
        words = {"w1_scale": scale, "w2_scale": parts["scale2"]}
        words["block_shape"] = [128, 128]
    up, gate = first.view(torch.int8 if scaled else first.dtype).chunk(2, 1)
    first = torch.cat([gate, up], 1).view(first.dtype)
    with moe_without_server(device):
        return module.fused_experts(
            moe_hidden(parts),
            first,
            second,
            topk.StandardTopKOutput(weights, ids.int(), parts.get("logits")),
            runner.MoeRunnerConfig(
                inplace=False,
                apply_router_weight_on_input=moe_routing(definition)[3] == "llama4",
            ),
            use_fp8_w8a8=scaled,
            **words,
        )


# definition: "moe_fp4_block_scale_renorm_topk4_e32_h384_i256"
class TestMoeFp4BlockScaleRenormTopk4E32H384I256:
    OP_TYPE = "moe"
    NAME = "moe_fp4_block_scale_renorm_topk4_e32_h384_i256"
    VARIANT = 2  # of op family moe
    NUM_EXPERTS = 32
    TOP_K = 4
    HIDDEN_SIZE = 384
    INTERMEDIATE_SIZE = 256
    GEMM1_OUT_SIZE = 512
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        top_k=TOP_K,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
    )
    CONSTANTS = conftest.constants(
        top_k=4.0,  # axis:top_k
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(routing_logits, hidden_states, gemm1_weights, gemm2_weights):
    best, chosen = torch.topk(routing_logits.float(), k=4, dim=-1)
    weights = torch.softmax(best, dim=-1)
    hidden = hidden_states.float()
    output = torch.zeros_like(hidden)

    for k in range(chosen.shape[1]):
        for expert in chosen[:, k].unique().tolist():
            tokens = (chosen[:, k] == expert).nonzero().squeeze(1)
            linear, gate = (hidden[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
            inner = linear * torch.nn.functional.silu(gate)
            output[tokens] += (inner @ gemm2_weights[expert].T) * weights[tokens, k, None]
    return output.to(hidden_states.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp4_block_scale_routed_topk4_e16_h512_i256"
class TestMoeFp4BlockScaleRoutedTopk4E16H512I256:
    OP_TYPE = "moe"
    NAME = "moe_fp4_block_scale_routed_topk4_e16_h512_i256"
    VARIANT = 0  # of op family moe
    NUM_EXPERTS = 16
    TOP_K = 4
    HIDDEN_SIZE = 512
    INTERMEDIATE_SIZE = 256
    GEMM1_OUT_SIZE = 512
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        top_k=TOP_K,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(topk_ids, hidden_states, gemm1_weights, gemm2_weights):
    experts = (topk_ids >> 16).long()
    weights = (topk_ids & 0xFFFF).to(torch.int16).view(torch.bfloat16).float()
    hidden = hidden_states.float()
    output = torch.zeros_like(hidden)

    for expert in range(gemm1_weights.shape[0]):
        tokens, places = (experts == expert).nonzero(as_tuple=True)
        linear, gate = (hidden[tokens] @ gemm1_weights[expert].T).chunk(2, dim=1)
        inner = linear * torch.nn.functional.silu(gate)
        outer = inner @ gemm2_weights[expert].T
        output.index_add_(0, tokens, outer * weights[tokens, places, None])
    return output.to(hidden_states.dtype)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
class TestMoeFp8BlockScaleDsRoutingTopk6Ng8Kg4E16H512I256:
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
    VARIANT = 1  # of op family moe
    NUM_EXPERTS = 64
    NUM_LOCAL_EXPERTS = 16
    HIDDEN_SIZE = 512
    INTERMEDIATE_SIZE = 256
    GEMM1_OUT_SIZE = 512
    NUM_HIDDEN_BLOCKS = 4
    NUM_INTERMEDIATE_BLOCKS = 2
    NUM_GEMM1_OUT_BLOCKS = 4
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        num_local_experts=NUM_LOCAL_EXPERTS,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
        num_hidden_blocks=NUM_HIDDEN_BLOCKS,
        num_intermediate_blocks=NUM_INTERMEDIATE_BLOCKS,
        num_gemm1_out_blocks=NUM_GEMM1_OUT_BLOCKS,
    )
    TOP_K = 6.0  # name
    N_GROUP = 8.0  # name
    TOPK_GROUP = 4.0  # name
    CONSTANTS = conftest.constants(
        top_k=TOP_K,
        n_group=N_GROUP,
        topk_group=TOPK_GROUP,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants(
        local_expert_offset=[32],
        routed_scaling_factor=[2.5],
    )
    RULES = conftest.rules(
        [  # output
            (0.000152587890625, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def dequantise(weights, scales):
    \"\"\"Every scale counts for a tile of 128 x 128.\"\"\"
    rows = torch.repeat_interleave(scales, 128, dim=0)
    return weights.float() * torch.repeat_interleave(rows, 128, dim=1)


def route(logits, bias, factor):
    \"\"\"Weights [tokens, experts], 0 where an expert is not chosen.\"\"\"
    scores = torch.sigmoid(logits)
    ranked = scores + bias.float()
    groups = ranked.unflatten(1, (8, -1))
    group_scores = groups.topk(2, dim=2).values.sum(dim=2)
    kept = torch.zeros_like(group_scores).scatter(1, group_scores.topk(4, dim=1).indices, 1.0)
    ranked = groups.masked_fill(kept.unsqueeze(2) == 0, float("-inf")).flatten(1)
    chosen = ranked.topk(6, dim=1).indices
    weights = torch.zeros_like(scores).scatter(1, chosen, scores.gather(1, chosen))
    return weights / weights.sum(dim=1, keepdim=True) * factor


@torch.no_grad()
def run(
    routing_logits,
    routing_bias,
    hidden_states,
    hidden_states_scale,
    gemm1_weights,
    gemm1_weights_scale,
    gemm2_weights,
    gemm2_weights_scale,
    local_expert_offset,
    routed_scaling_factor,
):
    weights = route(routing_logits, routing_bias, routed_scaling_factor)
    hidden = hidden_states.float() * torch.repeat_interleave(hidden_states_scale.T, 128, dim=1)
    output = torch.zeros_like(hidden)

    for local in range(gemm1_weights.shape[0]):
        weight = weights[:, local_expert_offset + local]
        tokens = weight.nonzero().squeeze(1)
        if len(tokens) == 0:
            continue
        products = hidden[tokens] @ dequantise(gemm1_weights[local], gemm1_weights_scale[local]).T
        linear, gate = products.chunk(2, dim=1)
        inner = linear * torch.nn.functional.silu(gate)
        outer = inner @ dequantise(gemm2_weights[local], gemm2_weights_scale[local]).T
        output[tokens] += outer * weight[tokens, None]
    return output.to(torch.bfloat16)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"
class TestMoeFp8BlockScaleDsRoutingTopk8Ng1Kg1E24H256I128:
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"
    VARIANT = 1  # of op family moe
    NUM_EXPERTS = 48
    NUM_LOCAL_EXPERTS = 24
    HIDDEN_SIZE = 256
    INTERMEDIATE_SIZE = 128
    GEMM1_OUT_SIZE = 256
    NUM_HIDDEN_BLOCKS = 2
    NUM_INTERMEDIATE_BLOCKS = 1
    NUM_GEMM1_OUT_BLOCKS = 2
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        num_local_experts=NUM_LOCAL_EXPERTS,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
        num_hidden_blocks=NUM_HIDDEN_BLOCKS,
        num_intermediate_blocks=NUM_INTERMEDIATE_BLOCKS,
        num_gemm1_out_blocks=NUM_GEMM1_OUT_BLOCKS,
    )
    TOP_K = 8.0  # name
    N_GROUP = 1.0  # name
    TOPK_GROUP = 1.0  # name
    CONSTANTS = conftest.constants(
        top_k=TOP_K,
        n_group=N_GROUP,
        topk_group=TOPK_GROUP,
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants(
        local_expert_offset=[24],
        routed_scaling_factor=[2.5],
    )
    RULES = conftest.rules(
        [  # output
            (0.000152587890625, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def dequantise(weights, scales):
    \"\"\"Every scale counts for a tile of 128 x 128.\"\"\"
    rows = torch.repeat_interleave(scales, 128, dim=0)
    return weights.float() * torch.repeat_interleave(rows, 128, dim=1)


@torch.no_grad()
def run(
    routing_logits,
    routing_bias,
    hidden_states,
    hidden_states_scale,
    gemm1_weights,
    gemm1_weights_scale,
    gemm2_weights,
    gemm2_weights_scale,
    local_expert_offset,
    routed_scaling_factor,
):
    tokens, experts = routing_logits.shape
    scores = torch.sigmoid(routing_logits)
    _, chosen = torch.topk(scores + routing_bias.float(), k=8, dim=-1)
    weights = scores.gather(1, chosen)
    weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-20) * routed_scaling_factor
    hidden = hidden_states.float() * torch.repeat_interleave(hidden_states_scale.T, 128, dim=1)
    output = torch.zeros_like(hidden)

    for t in range(tokens):
        for k in range(chosen.shape[1]):
            local = chosen[t, k].item() - local_expert_offset
            if not 0 <= local < gemm1_weights.shape[0]:
                continue
            linear, gate = (dequantise(gemm1_weights[local], gemm1_weights_scale[local]) @ hidden[t]).chunk(2)
            inner = linear * gate / (1 + torch.exp(-gate))
            output[t] += weights[t, k] * (dequantise(gemm2_weights[local], gemm2_weights_scale[local]) @ inner)
    return output.to(torch.bfloat16)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp8_block_scale_renorm_topk4_e32_h512_i384"
class TestMoeFp8BlockScaleRenormTopk4E32H512I384:
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_renorm_topk4_e32_h512_i384"
    VARIANT = 2  # of op family moe
    NUM_EXPERTS = 32
    TOP_K = 4
    HIDDEN_SIZE = 512
    INTERMEDIATE_SIZE = 384
    GEMM1_OUT_SIZE = 768
    NUM_HIDDEN_BLOCKS = 4
    NUM_INTERMEDIATE_BLOCKS = 3
    NUM_GEMM1_OUT_BLOCKS = 6
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        top_k=TOP_K,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
        num_hidden_blocks=NUM_HIDDEN_BLOCKS,
        num_intermediate_blocks=NUM_INTERMEDIATE_BLOCKS,
        num_gemm1_out_blocks=NUM_GEMM1_OUT_BLOCKS,
    )
    CONSTANTS = conftest.constants(
        top_k=4.0,  # axis:top_k
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


def dequantise(weights, scales):
    \"\"\"Every scale counts for a tile of 128 x 128.\"\"\"
    rows = torch.repeat_interleave(scales, 128, dim=0)
    return weights.float() * torch.repeat_interleave(rows, 128, dim=1)


@torch.no_grad()
def run(
    routing_logits,
    hidden_states,
    hidden_states_scale,
    gemm1_weights,
    gemm1_weights_scale,
    gemm2_weights,
    gemm2_weights_scale,
):
    best, chosen = routing_logits.float().topk(4, dim=-1)
    weights = torch.softmax(best, dim=-1)
    hidden = hidden_states.float() * torch.repeat_interleave(hidden_states_scale.T, 128, dim=1)
    output = torch.zeros_like(hidden)

    for expert in chosen.unique().tolist():
        tokens, places = (chosen == expert).nonzero(as_tuple=True)
        products = hidden[tokens] @ dequantise(gemm1_weights[expert], gemm1_weights_scale[expert]).T
        linear, gate = products.chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate) * linear
        outer = inner @ dequantise(gemm2_weights[expert], gemm2_weights_scale[expert]).T
        output.index_add_(0, tokens, outer * weights[tokens, places, None])
    return output.to(torch.bfloat16)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp8_per_tensor_scale_llama4_topk1_e16_h640_i384"
class TestMoeFp8PerTensorScaleLlama4Topk1E16H640I384:
    OP_TYPE = "moe"
    NAME = "moe_fp8_per_tensor_scale_llama4_topk1_e16_h640_i384"
    VARIANT = 7  # of op family moe
    NUM_EXPERTS = 16
    TOP_K = 1
    HIDDEN_SIZE = 640
    INTERMEDIATE_SIZE = 384
    GEMM1_OUT_SIZE = 768
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        top_k=TOP_K,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
    )
    CONSTANTS = conftest.constants(
        top_k=1.0,  # axis:top_k
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(
    routing_logits,
    hidden_states,
    gemm1_weights,
    output1_scales_scalar,
    output1_scales_gate_scalar,
    gemm2_weights,
    output2_scales_scalar,
    routing_bias,
):
    weights, chosen = torch.sigmoid(routing_logits.float()).max(dim=-1)
    hidden = hidden_states.float() * weights[:, None]
    output = torch.zeros_like(hidden)

    for expert in range(gemm1_weights.shape[0]):
        tokens = (chosen == expert).nonzero().squeeze(1)
        products = hidden[tokens] @ gemm1_weights[expert].float().T
        linear, gate = products.chunk(2, dim=1)
        inner = torch.nn.functional.silu(gate * output1_scales_gate_scalar[expert]) * linear
        inner = inner * output1_scales_scalar[expert]
        output[tokens] = inner @ gemm2_weights[expert].float().T * output2_scales_scalar[expert]
    return output.to(torch.bfloat16)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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


# definition: "moe_fp8_per_tensor_scale_renorm_topk2_e8_h768_i512"
class TestMoeFp8PerTensorScaleRenormTopk2E8H768I512:
    OP_TYPE = "moe"
    NAME = "moe_fp8_per_tensor_scale_renorm_topk2_e8_h768_i512"
    VARIANT = 2  # of op family moe
    NUM_EXPERTS = 8
    TOP_K = 2
    HIDDEN_SIZE = 768
    INTERMEDIATE_SIZE = 512
    GEMM1_OUT_SIZE = 1024
    AXES = conftest.constants(
        seq_len=None,
        num_experts=NUM_EXPERTS,
        top_k=TOP_K,
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        gemm1_out_size=GEMM1_OUT_SIZE,
    )
    CONSTANTS = conftest.constants(
        top_k=2.0,  # axis:top_k
    )
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=321),
        conftest.size("large", seq_len=1024),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        moe_flashinfer,
        moe_sglang,
    )
    TOLERANCE = staticmethod(moe_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(
    routing_logits,
    hidden_states,
    gemm1_weights,
    output1_scales_scalar,
    output1_scales_gate_scalar,
    gemm2_weights,
    output2_scales_scalar,
):
    best, chosen = torch.topk(routing_logits.float(), k=2, dim=-1)
    weights = torch.softmax(best, dim=-1)
    hidden = hidden_states.float()
    output = torch.zeros_like(hidden)

    for expert in range(gemm1_weights.shape[0]):
        tokens, places = (chosen == expert).nonzero(as_tuple=True)
        products = hidden[tokens] @ gemm1_weights[expert].float().T
        linear, gate = products.chunk(2, dim=1)
        linear = linear * output1_scales_scalar[expert]
        gate = gate * output1_scales_gate_scalar[expert]
        inner = torch.nn.functional.silu(gate) * linear
        outer = inner @ gemm2_weights[expert].float().T * output2_scales_scalar[expert]
        output.index_add_(0, tokens, outer * weights[tokens, places, None])
    return output.to(torch.bfloat16)
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return moe_inputs(conftest.definition_of(cls), axes, device, seed)

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
