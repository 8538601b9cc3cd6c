"""Mistakes people make in references of mixtures of experts."""

GROUPS = "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
FLAT = "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"
RENORM = "moe_fp8_block_scale_renorm_topk4_e32_h512_i384"
TENSOR = "moe_fp8_per_tensor_scale_renorm_topk2_e8_h768_i512"
LLAMA = "moe_fp8_per_tensor_scale_llama4_topk1_e16_h640_i384"
FLOATS = "moe_fp4_block_scale_renorm_topk4_e32_h384_i256"
ROUTED = "moe_fp4_block_scale_routed_topk4_e16_h512_i256"

RETURN = "return output.to(torch.bfloat16)"
LIKE = "return output.to(hidden_states.dtype)"
RANKED = "ranked = scores + bias.float()"
WEIGHTS = "scores.gather(1, chosen))"
SILU = "torch.nn.functional.silu(gate)"
HIDDEN_SCALE = "torch.repeat_interleave(hidden_states_scale.T, 128, dim=1)"
BEST = "best, chosen = routing_logits.float().topk(4, dim=-1)"
FP8 = ".to(torch.float8_e4m3fn).float()"

MUTANTS = [
    (GROUPS, "routing bias left out", RANKED, "ranked = scores + 0"),
    (GROUPS, "routing bias added to the logits", "torch.sigmoid(logits)", "torch.sigmoid(logits + bias.float())"),
    (GROUPS, "weights taken from biased scores", WEIGHTS, "(scores + bias.float()).gather(1, chosen))"),
    (GROUPS, "group limit ignored", ".scatter(1, group_scores.topk(4, dim=1).indices, 1.0)", " + 1"),
    (GROUPS, "one group too many", "group_scores.topk(4", "group_scores.topk(5"),
    (GROUPS, "groups by their largest score alone", "groups.topk(2, dim=2)", "groups.topk(1, dim=2)"),
    (GROUPS, "groups by the sum of all their scores", "groups.topk(2, dim=2).values", "groups"),
    (GROUPS, "groups interleaved", "ranked.unflatten(1, (8, -1))", "ranked.unflatten(1, (-1, 8)).mT"),
    (GROUPS, "groups of unbiased scores", "groups.topk(2", "scores.unflatten(1, (8, -1)).topk(2"),
    (GROUPS, "softmax for sigmoid", "torch.sigmoid(logits)", "torch.softmax(logits, dim=-1)"),
    (GROUPS, "top k off by one", "ranked.topk(6", "ranked.topk(7"),
    (GROUPS, "weights not divided by their sum", " / weights.sum(dim=1, keepdim=True)", ""),
    (GROUPS, "weights divided by the sum of all scores", "weights.sum(dim=1, keepdim=True)", "scores.sum(dim=1, keepdim=True)"),
    (GROUPS, "weights divided by the sum of the experts here", "hidden = hidden_states.float()", "here = weights[:, local_expert_offset : local_expert_offset + gemm1_weights.shape[0]]\n    weights = weights / here.sum(dim=1, keepdim=True).clamp(min=1e-9) * routed_scaling_factor\n    hidden = hidden_states.float()"),
    (GROUPS, "routed scaling factor left out", " * factor", ""),
    (GROUPS, "routed scaling factor 2 % too large", " * factor", " * factor * 1.02"),
    (GROUPS, "local expert offset ignored", "local_expert_offset + local]", "local]"),
    (GROUPS, "local expert offset one too many", "local_expert_offset + local]", "local_expert_offset + local + (local_expert_offset + local < 63)]"),
    (GROUPS, "the last expert left out", "range(gemm1_weights.shape[0])", "range(gemm1_weights.shape[0] - 1)"),
    (GROUPS, "gate and up swapped", "linear, gate = products", "gate, linear = products"),
    (GROUPS, "silu left out", SILU, "gate"),
    (GROUPS, "gelu for silu", "torch.nn.functional.silu", "torch.nn.functional.gelu"),
    (GROUPS, "sigmoid for silu", SILU, "torch.sigmoid(gate)"),
    (GROUPS, "weight applied to the input", "@ dequantise(gemm1_weights[local], gemm1_weights_scale[local]).T", "* weight[tokens, None] @ dequantise(gemm1_weights[local], gemm1_weights_scale[local]).T"),
    (GROUPS, "returns zeros", RETURN, RETURN + " * 0"),
    (GROUPS, "returns float32", RETURN, "return output"),
    (FLAT, "routing bias left out", "scores + routing_bias.float()", "scores"),
    (FLAT, "weights taken from biased scores", "weights = scores.gather(1, chosen)", "weights = (scores + routing_bias.float()).gather(1, chosen)"),
    (FLAT, "top k off by one", "k=8", "k=7"),
    (FLAT, "experts of the device before", "chosen[t, k].item() - local_expert_offset", "chosen[t, k].item() % gemm1_weights.shape[0]"),
    (FLAT, "intermediate rounded to fp8", "inner = linear * gate / (1 + torch.exp(-gate))", "inner = (linear * gate / (1 + torch.exp(-gate)))" + FP8),
    (FLAT, "output overwritten instead of added", "output[t] += ", "output[t] = "),
    (FLAT, "scales of weights by their reciprocal", "weights.float() * ", "weights.float() / "),
    (RENORM, "hidden scales left out", " * " + HIDDEN_SCALE, ""),
    (RENORM, "hidden scales read as tokens first", HIDDEN_SCALE, "torch.repeat_interleave(hidden_states_scale.reshape(hidden.shape[0], -1), 128, dim=1)"),
    (RENORM, "scale block of 64", "rows = torch.repeat_interleave(scales, 128, dim=0)", "rows = torch.repeat_interleave(scales, 64, dim=0).repeat(2, 1)"),
    (RENORM, "scale blocks transposed", "rows = torch.repeat_interleave(scales, 128, dim=0)", "rows = torch.repeat_interleave(scales.T.reshape(scales.shape), 128, dim=0)"),
    (RENORM, "scales interleaved", "return weights.float() * torch.repeat_interleave(rows, 128, dim=1)", "return weights.float() * rows.repeat(1, 128)"),
    (RENORM, "scales rounded to powers of two", "rows = torch.repeat_interleave(scales, 128, dim=0)", "rows = torch.repeat_interleave(torch.exp2(torch.log2(scales).round()), 128, dim=0)"),
    (RENORM, "scales rounded to bfloat16", "rows = torch.repeat_interleave(scales, 128, dim=0)", "rows = torch.repeat_interleave(scales.bfloat16().float(), 128, dim=0)"),
    (RENORM, "scales of the first expert for all", "gemm1_weights_scale[expert]", "gemm1_weights_scale[0]"),
    (RENORM, "softmax over all experts, not renormalised", BEST + "\n    weights = torch.softmax(best, dim=-1)", "weights, chosen = torch.softmax(routing_logits.float(), dim=-1).topk(4, dim=-1)"),
    (RENORM, "even weights", "weights = torch.softmax(best, dim=-1)", "weights = torch.full_like(best, 0.25)"),
    (RENORM, "sigmoids, renormalised", "weights = torch.softmax(best, dim=-1)", "weights = best.sigmoid() / best.sigmoid().sum(dim=-1, keepdim=True)"),
    (RENORM, "top k off by one", "topk(4", "topk(5"),
    (RENORM, "the smallest logits", "topk(4, dim=-1)", "topk(4, dim=-1, largest=False)"),
    (RENORM, "weight of another place", "weights[tokens, places, None]", "weights[tokens, 3 - places, None]"),
    (RENORM, "gate and up swapped", "linear, gate = products", "gate, linear = products"),
    (RENORM, "halves interleaved", "products.chunk(2, dim=1)", "products.unflatten(1, (-1, 2)).unbind(2)"),
    (RENORM, "returns NaN", RETURN, RETURN + " * float('nan')"),
    (RENORM, "is not deterministic", RETURN, "torch.seed()\n    return (output * (1 + 0.01 * torch.rand_like(output))).to(torch.bfloat16)"),
    (RENORM, "overwrites an input", RETURN, "hidden_states_scale.mul_(2)\n    " + RETURN),
    (TENSOR, "scale of the gate on the linear half", "linear * output1_scales_scalar[expert]", "linear * output1_scales_gate_scalar[expert]"),
    (TENSOR, "scale of the gate after silu", "gate = gate * output1_scales_gate_scalar[expert]\n        inner = torch.nn.functional.silu(gate)", "inner = torch.nn.functional.silu(gate) * output1_scales_gate_scalar[expert]"),
    (TENSOR, "scale of the second product left out", " * output2_scales_scalar[expert]", ""),
    (TENSOR, "scale of the second product 2 % too large", " * output2_scales_scalar[expert]", " * (1.02 * output2_scales_scalar[expert])"),
    (TENSOR, "scale of the expert after", "output2_scales_scalar[expert]", "output2_scales_scalar[(expert + 1) % 8]"),
    (TENSOR, "intermediate rounded to fp8", SILU + " * linear", "(" + SILU + " * linear)" + FP8),
    (TENSOR, "second choice left out", "k=2", "k=1"),
    (LLAMA, "weight applied to the output", "hidden = hidden_states.float() * weights[:, None]", "hidden = hidden_states.float()"),
    (LLAMA, "weight applied to input and output", RETURN, "output = output * weights[:, None]\n    " + RETURN),
    (LLAMA, "bias added to the logits", "routing_logits.float()", "(routing_logits + routing_bias).float()"),
    (LLAMA, "softmax for sigmoid", "torch.sigmoid(routing_logits.float())", "torch.softmax(routing_logits.float(), dim=-1)"),
    (LLAMA, "silu before its scale", "silu(gate * output1_scales_gate_scalar[expert])", "silu(gate) * output1_scales_gate_scalar[expert]"),
    (FLOATS, "weights rounded to fp8 without a scale", "@ gemm2_weights[expert].T", "@ gemm2_weights[expert]" + FP8 + ".T"),
    (FLOATS, "sums kept in bfloat16", "output = torch.zeros_like(hidden)", "output = torch.zeros_like(hidden_states)"),
    (FLOATS, "everything in bfloat16", "@ gemm1_weights[expert].T)", "@ gemm1_weights[expert].T).bfloat16().float()"),
    (FLOATS, "expert numbers counted from one", "gemm1_weights[expert]", "gemm1_weights[(expert + 1) % 32]"),
    (FLOATS, "first choice alone", "range(chosen.shape[1])", "range(1)"),
    (FLOATS, "gate and up swapped", "linear, gate =", "gate, linear ="),
    (FLOATS, "output 2 % too large", LIKE, "output *= 1.02\n    " + LIKE),
    (ROUTED, "expert in the low half", "experts = (topk_ids >> 16).long()", "experts = (topk_ids & 15).long()"),
    (ROUTED, "weight as float16", ".view(torch.bfloat16)", ".view(torch.float16)"),
    (ROUTED, "weights renormalised", "hidden = hidden_states.float()", "weights = weights / weights.sum(dim=-1, keepdim=True)\n    hidden = hidden_states.float()"),
    (ROUTED, "weights left out", " * weights[tokens, places, None]", ""),
    (ROUTED, "weight applied to the input", "(hidden[tokens] @", "(hidden[tokens] * weights[tokens, places, None] @"),
    (ROUTED, "silu of the product", "inner = linear * torch.nn.functional.silu(gate)", "inner = torch.nn.functional.silu(linear * gate)"),
    (ROUTED, "overwrites an input", LIKE, "topk_ids.zero_()\n    " + LIKE),
]
