# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 4e992dad1ac3910d859806e3669940d8
"""Tests of definitions/moe. conftest.py says how they run."""

import conftest


# definition: "moe_fp4_block_scale_renorm_topk4_e32_h384_i256"
class TestMoeFp4BlockScaleRenormTopk4E32H384I256(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp4_block_scale_renorm_topk4_e32_h384_i256"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        hidden="hidden_states",
        weights1="gemm1_weights",
        weights2="gemm2_weights",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("renormalise",)
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp4_block_scale_routed_topk4_e16_h512_i256"
class TestMoeFp4BlockScaleRoutedTopk4E16H512I256(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp4_block_scale_routed_topk4_e16_h512_i256"
    FAMILY = "moe"
    ROLES = conftest.constants(
        ids="topk_ids",
        hidden="hidden_states",
        weights1="gemm1_weights",
        weights2="gemm2_weights",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("given",)
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
class TestMoeFp8BlockScaleDsRoutingTopk6Ng8Kg4E16H512I256(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        bias="routing_bias",
        hidden="hidden_states",
        hidden_scale="hidden_states_scale",
        weights1="gemm1_weights",
        scale1="gemm1_weights_scale",
        weights2="gemm2_weights",
        scale2="gemm2_weights_scale",
        offset="local_expert_offset",
        scaling="routed_scaling_factor",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("deepseek", "blocks_first")
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    SCALARS = conftest.constants(
        local_expert_offset=[
            32,
            17,
            32,
            48,
            48,
        ],
        routed_scaling_factor=[
            2.5,
            2.5,
            0.625,
            0.625,
            0.625,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.000152587890625, 0.0078125, 1.0),
            (0.000152587890625, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"
class TestMoeFp8BlockScaleDsRoutingTopk8Ng1Kg1E24H256I128(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        bias="routing_bias",
        hidden="hidden_states",
        hidden_scale="hidden_states_scale",
        weights1="gemm1_weights",
        scale1="gemm1_weights_scale",
        weights2="gemm2_weights",
        scale2="gemm2_weights_scale",
        offset="local_expert_offset",
        scaling="routed_scaling_factor",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("deepseek", "blocks_first")
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    SCALARS = conftest.constants(
        local_expert_offset=[
            24,
            8,
            24,
            24,
            24,
        ],
        routed_scaling_factor=[
            2.5,
            2.5,
            0.625,
            0.625,
            0.625,
        ],
    )
    RULES = conftest.rules(
        [  # output
            (0.000152587890625, 0.0078125, 1.0),
            (0.000152587890625, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp8_block_scale_renorm_topk4_e32_h512_i384"
class TestMoeFp8BlockScaleRenormTopk4E32H512I384(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp8_block_scale_renorm_topk4_e32_h512_i384"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        hidden="hidden_states",
        hidden_scale="hidden_states_scale",
        weights1="gemm1_weights",
        scale1="gemm1_weights_scale",
        weights2="gemm2_weights",
        scale2="gemm2_weights_scale",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("renormalise", "blocks_first")
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp8_per_tensor_scale_llama4_topk1_e16_h640_i384"
class TestMoeFp8PerTensorScaleLlama4Topk1E16H640I384(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp8_per_tensor_scale_llama4_topk1_e16_h640_i384"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        hidden="hidden_states",
        weights1="gemm1_weights",
        factor_up="output1_scales_scalar",
        factor_gate="output1_scales_gate_scalar",
        weights2="gemm2_weights",
        factor_down="output2_scales_scalar",
        bias="routing_bias",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("llama4", "weights_on_input")
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: "moe_fp8_per_tensor_scale_renorm_topk2_e8_h768_i512"
class TestMoeFp8PerTensorScaleRenormTopk2E8H768I512(conftest.DefinitionTests):
    OP_TYPE = "moe"
    NAME = "moe_fp8_per_tensor_scale_renorm_topk2_e8_h768_i512"
    FAMILY = "moe"
    ROLES = conftest.constants(
        logits="routing_logits",
        hidden="hidden_states",
        weights1="gemm1_weights",
        factor_up="output1_scales_scalar",
        factor_gate="output1_scales_gate_scalar",
        weights2="gemm2_weights",
        factor_down="output2_scales_scalar",
    )
    OUTPUT_ROLES = conftest.constants(
        output="output",
    )
    MODES = ("renormalise",)
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
    SIZES = (
        conftest.size("small", seq_len=1),
        conftest.size("small", seq_len=16),
        conftest.size("medium", seq_len=513),
        conftest.size("medium", seq_len=256),
        conftest.size("large", seq_len=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (2,), (1, 2), (1, 2, 1))
    EDGES = (
        conftest.edge("no_tokens", seq_len=0),
        conftest.edge("one_token", seq_len=1),
    )
    RULES = conftest.rules(
        [  # output
            (6.103515625e-05, 0.0078125, 1.0),
        ],
    )
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


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
