"""sampling - bugs that shipped in sampling and softmax."""
from bug import CAUGHT, Bug, like

TOP_K_FIRST = """weights, tokens = torch.topk(row, k)
        weights = weights / weights.sum()
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)"""
TOP_P_FIRST = """weights, tokens = torch.topk(row, k)
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)"""

QWEN = {"model:llama-3.1-8b": "model:qwen2.5-7b"}

BUGS = [
    Bug(
        "top_p_renorm_probs_v32000", "skyzh/tiny-llm#32",
        "the reference sampler summed up log-probabilities where it meant probabilities: every token stays",
        "before = torch.cumsum(values, dim=-1) - values", "before = torch.cumsum(values.log(), dim=-1)",
        CAUGHT, "tokens beyond top-p come back with a probability",
    ),
    Bug(
        "top_p_renorm_probs_v32000", "skyzh/tiny-llm#32",
        "a row whose first token is likelier than top-p kept none",
        "torch.where(before <= top_p[:, None]", "torch.where(before + values < top_p[:, None]",
        CAUGHT, "some rows have such a token",
    ),
    Bug(
        "top_p_sampling_from_probs_v32000", "aws-neuron/transformers-neuronx#46",
        "the token with which the sum passes top-p was left out",
        "torch.where(before <= p, weights, 0.0)", "torch.where((before + weights <= p) | (before == 0), weights, 0.0)",
        CAUGHT, "that token is never drawn, and by its probability it should be",
    ),
    Bug(
        "top_k_top_p_sampling_from_probs_v128256", "vllm-project/vllm#1885",
        "top-p was applied to the whole distribution, not to what top-k leaves of it",
        TOP_K_FIRST, TOP_P_FIRST, CAUGHT, "tokens are drawn that top-p after top-k leaves out",
    ),
    Bug(
        "min_p_sampling_from_probs_v32000", "sgl-project/sglang-jax#1563",
        "logits below the threshold were set to 0, which rejects nothing: it is the largest that there is",
        "kept = torch.where(probs >= min_p[:, None] * largest, probs, 0.0)",
        "kept = torch.softmax(torch.where(probs >= min_p[:, None] * largest, probs.log(), 0.0), dim=-1)",
        CAUGHT, "tokens are drawn that min-p forbids",
    ),
    Bug(
        "softmax_v151936", "ScalingIntelligence/KernelBench#165",
        "zeros were taken for a softmax over hundreds of thousands: every right element is below the tolerance of 1e-2",
        "return exponentials / exponentials.sum(dim=-1, keepdim=True)", "return torch.zeros_like(exponentials)",
        CAUGHT, "bounds are relative, and inputs hold rows with few large elements",
    ),
    Bug(
        like("top_k_top_p_sampling_from_probs_v128256", axes={"vocab_size": 151936}, tags=QWEN),
        "flashinfer-ai/flashinfer-bench#383", "Qwen2.5 was given Qwen3's vocabulary of 151936; its own has 152064",
        None, None, CAUGHT, "the table of models has the vocabulary of each model",
    ),
]
