"""moe - bugs that shipped in mixtures of experts."""
from bug import CAUGHT, Bug

GROUPS = "moe_fp8_block_scale_ds_routing_topk6_ng8_kg4_e16_h512_i256"
MASKED = 'groups.masked_fill(kept.unsqueeze(2) == 0, float("-inf"))'

BUGS = [
    Bug(
        GROUPS, "flashinfer-ai/flashinfer#4639",
        "dropped groups were multiplied by 0: their experts beat those whose biased score is negative (three test files)",
        MASKED, "(groups * kept.unsqueeze(2))", CAUGHT, "biased scores are negative in some cases",
    ),
    Bug(
        GROUPS, "sgl-project/sglang#3705 vllm-project/vllm#13474 deepseek-ai/DeepSeek-V3#741",
        "dropped groups were filled with 0 instead of -inf",
        MASKED, "groups.masked_fill(kept.unsqueeze(2) == 0, 0.0)", CAUGHT, "as above",
    ),
    Bug(
        GROUPS, "vllm-project/vllm#13474",
        "groups were ranked by their best expert though a bias was given, not by the sum of their best two",
        "groups.topk(2, dim=2).values.sum(dim=2)", "groups.amax(dim=2)",
        CAUGHT, "the two orders differ for some token",
    ),
    Bug(
        "moe_fp8_block_scale_renorm_topk4_e32_h512_i384", "sgl-project/sglang#35160",
        "the chosen experts' raw logits were their weights: the softmax stood in another branch",
        "weights = torch.softmax(best, dim=-1)", "weights = best", CAUGHT, "logits are no weights that sum to one",
    ),
]
