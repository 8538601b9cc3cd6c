"""attention - bugs that shipped in attention kernels, their caches and their merges."""
from bug import CAUGHT, EDGE, Bug, like

PAGED = "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
DECODE = "gqa_paged_decode_h28_kv4_d128_ps1"
RAGGED = "gqa_ragged_prefill_h16_kv16_d80"
MLA = "mla_ragged_prefill_h16_qk192_vo128"
INDEXER = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"

DIMENSIONS = " ".join(f"flashinfer-ai/flashinfer-bench#{number}" for number in (237, 239, 240, 262, 334))

# WIDE: lines of the correct reference of DECODE, which repeat each kv head for the query heads that share it. TILED:
# the wrong lines, which repeat the kv heads in another order.
WIDE = """keys = k_cache[slots, 0].float().transpose(0, 1).repeat_interleave(group, dim=0)
            values = v_cache[slots, 0].float().transpose(0, 1).repeat_interleave(group, dim=0)"""
TILED = WIDE.replace("repeat_interleave(group, dim=0)", "repeat(group, 1, 1)")
SOFTMAX = """lse[i] = torch.logsumexp(logits, dim=-1) / math.log(2)
            weights = torch.softmax(logits, dim=-1)"""
SENTINEL = """largest = logits.amax(dim=-1, keepdim=True).clamp(min=-5e4)
            weights = torch.exp(logits - largest)
            total = weights.sum(dim=-1, keepdim=True) + 1e-30
            lse[i] = (largest + torch.log(total))[:, 0] / math.log(2)
            weights = weights / total"""

BUGS = [
    Bug(
        PAGED, "flashinfer-ai/flashinfer-bench#233",
        "vectorised, the prefill lost its `continue` for rows that see no key: NaN where there was 0 and -inf; copies kept it",
        "weights = weights.masked_fill(~seen[:, None, None, :], 0)", "pass",
        EDGE, "a query before the first key is an edge: what it gives is a convention, which a finding names",
    ),
    Bug(
        "gqa_ragged_prefill_causal_h8_kv4_d256", "Dao-AILab/flash-attention#978",
        "the logarithm of the sum was +inf, not -inf, for queries that see no key",
        "lse = torch.full(q.shape[:2], -math.inf", "lse = torch.full(q.shape[:2], math.inf",
        CAUGHT, "some sequences have no keys",
    ),
    Bug(
        DECODE, "onnx/onnx#7274",
        "kv heads were tiled (0, 1, 0, 1) where neighbouring query heads share one (0, 0, 1, 1)",
        WIDE, TILED, CAUGHT, "no two heads hold the same",
    ),
    Bug(
        DECODE, "flashinfer-ai/flashinfer#4450",
        "the running maximum begins at -50000: logits below it count as no key at all",
        SOFTMAX, SENTINEL, CAUGHT, "all logits of some queries are below -65536",
    ),
    Bug(
        RAGGED, "huggingface/transformers#44397",
        "one of the attention paths left the scale that it was given aside and took 1/sqrt(head_dim)",
        "* sm_scale", "* q.shape[-1] ** -0.5", CAUGHT, "scales differ from the canonical one in some cases",
    ),
    Bug(
        "mla_paged_decode_h128_ckv512_kpe64_ps64", "flashinfer-ai/flashinfer#4485",
        "one of two backends of the same function returned the natural logarithm of the sum, not that to base 2",
        "torch.logsumexp(logits, dim=-1) / math.log(2)", "torch.logsumexp(logits, dim=-1)",
        CAUGHT, "the definition says base 2; every row shows a factor of 0.69",
    ),
    Bug(
        MLA, "gpu-mode/reference-kernels@2b13153",
        "the keys were reshaped where their axes were to be permuted",
        "k[keys].float().permute(1, 2, 0)", "k[keys].float().reshape(k.shape[1], k.shape[2], -1)",
        CAUGHT, "elements of other heads and places come in",
    ),
    Bug(
        MLA, "flashinfer-ai/flashinfer#3172",
        "values were given the head dimension of queries and keys",
        "torch.zeros(total_q, num_heads, v.shape[-1], dtype=q.dtype, device=q.device)", "torch.zeros_like(q)",
        CAUGHT, "the shape is not that of the definition; the sum does not even fit",
    ),
    Bug(
        "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1", "flashinfer-ai/flashinfer#3221",
        "the width of the values was taken from the cache, which holds the rotary part too",
        "latents = keys[:, : ckv_cache.shape[-1]]", "latents = keys",
        CAUGHT, "576 values do not go where 512 are declared",
    ),
    Bug(
        "merge_state_h32_d128",
        "sgl-project/sglang#35045 sgl-project/sglang#40903 vllm-project/vllm#28840 vllm-project/vllm#47079",
        "logarithms to base 2 were merged as if they were natural ones",
        "torch.exp2(s_a - largest), torch.exp2(s_b - largest)", "torch.exp(s_a - largest), torch.exp(s_b - largest)",
        CAUGHT, "weights of two states of unlike sizes differ",
    ),
    Bug(
        "merge_state_h32_d128", "flashinfer-ai/flashinfer#4051 vllm-project/vllm#39148",
        "two empty states merged to NaN: -inf was subtracted from itself, in the published reference as in kernels",
        "torch.maximum(s_a, s_b).clamp(min=-1e30)", "torch.maximum(s_a, s_b)",
        EDGE, "a merge of nothing but empty states is an edge",
    ),
    Bug(
        INDEXER, "flashinfer-ai/flashinfer#4169",
        "places without a key were filled with 0, which is a key, for -1",
        "torch.full((len(seq_lens), chosen), -1", "torch.full((len(seq_lens), chosen), 0",
        CAUGHT, "some sequences are shorter than the top-k",
    ),
    Bug(
        INDEXER, "ml-explore/mlx-lm#531",
        "the scores of the heads were summed without the ReLU before",
        "torch.relu(q_index_fp8[i].float() @ keys.T)", "(q_index_fp8[i].float() @ keys.T)",
        CAUGHT, "about half of the products are negative",
    ),
    Bug(
        like("dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", axes={"topk": 256}),
        "flashinfer-ai/flashinfer-bench#173", "256 keys were looked at; DeepSeek-V3.2 is configured with 2048",
        None, None, CAUGHT, "the table of models has the 2048 of DeepSeek-V3.2",
    ),
    Bug(
        like("gqa_ragged_prefill_causal_h10_kv2_d128", axes={"head_dim": 64}),
        DIMENSIONS, "heads of 64 were declared for models whose heads have 128",
        None, None, CAUGHT, "the table of models has the heads of each model",
    ),
]
