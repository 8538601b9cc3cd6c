"""norms - bugs that shipped in norms, activations, matrix products and rotary embeddings."""
from bug import CAUGHT, UNDECIDED, UNSEEN, Bug, definition, like

ROWS = "rows = hidden_states.float() + residual.float()"
INTERLEAVED = "return rotate(q, cos, sin, rotary_dim, interleave), rotate(k, cos, sin, rotary_dim, interleave)"

QUANTISED = definition(
    "rmsnorm_quant", "rmsnorm_quant_h512", {"batch_size": None, "hidden_size": 512},
    {
        "hidden_states": ("bfloat16", "batch_size", "hidden_size"),
        "weight": ("bfloat16", "hidden_size"),
        "scale": ("float32",),
    },
    {"output": ("float8_e4m3fn", "batch_size", "hidden_size")},
    """
def run(hidden_states, weight, scale):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6) * weight.float()
    return (normed / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
""",
)
GROUPED = definition(
    "fused_add_group_norm", "fused_add_group_norm_g4_h512", {"batch_size": None, "hidden_size": 512},
    {
        "hidden_states": ("bfloat16", "batch_size", "hidden_size"),
        "residual": ("bfloat16", "batch_size", "hidden_size"),
        "weight": ("float32", "hidden_size"),
    },
    {
        "output": ("bfloat16", "batch_size", "hidden_size"),
        "residual_out": ("bfloat16", "batch_size", "hidden_size"),
    },
    """
def run(hidden_states, residual, weight):
    rows = hidden_states.float() + residual.float()
    groups = rows.unflatten(1, (4, -1))
    centred = groups - groups.mean(dim=-1, keepdim=True)
    normed = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + 1e-5)
    return (normed.flatten(1) * weight).to(hidden_states.dtype), rows.to(residual.dtype)
""",
)

BUGS = [
    Bug(
        "gemma_fused_add_rmsnorm_h4608", "vllm-project/vllm#43242",
        "the residual came back in float32, not in the dtype that it came in",
        "rows.to(residual.dtype)", "rows", CAUGHT, "the dtype is not that of the definition",
    ),
    Bug(
        "gemma_rmsnorm_h5376", "huggingface/transformers#29402 vllm-project/vllm#3653",
        "Gemma's norm was rounded before it was multiplied by one plus the weight, and the product rounded again",
        "(normed * (1 + weight.float())).to(hidden_states.dtype)", "normed.to(hidden_states.dtype) * (1 + weight)",
        CAUGHT, "one plus a small weight keeps few of its bits in bfloat16",
    ),
    Bug(
        "fused_add_rmsnorm_h4096", "vllm-project/vllm#52104 vllm-project/vllm#52243 flashinfer-ai/flashinfer#3758",
        "the sum with the residual was rounded to bfloat16 before it was normed",
        ROWS, "rows = (hidden_states + residual).float()", CAUGHT,
        "some rows hold residuals of half a unit in the last place, which the rounded sum loses",
    ),
    Bug(
        "rmsnorm_h2048", "sgl-project/sglang#22931 vllm-project/vllm#42379 vllm-project/vllm#49639",
        "normed rows were rounded before the weight came in, not after: tokens changed though 1e-2 was held",
        "(normed * weight.float()).to(hidden_states.dtype)", "normed.to(hidden_states.dtype) * weight",
        UNSEEN,
        "it moves the result by one unit in the last place, which is the bound; both orders are in use, and no name tells "
        "which is meant",
    ),
    Bug(
        like("rmsnorm_h4096", dtypes={"hidden_states": "float32", "weight": "float32", "output": "float32"}),
        "GeeeekExplorer/nano-vllm#170",
        "`.float()` gives float32 rows back as they are, and what followed was done in place: the caller's rows changed",
        "normed = rows * torch.rsqrt(mean_square + EPSILON)", "normed = rows.mul_(torch.rsqrt(mean_square + EPSILON))",
        CAUGHT, "inputs are compared with what they were",
    ),
    Bug(
        QUANTISED, "flashinfer-ai/flashinfer#3758", "the quantised norm was multiplied by the scale, not divided",
        "normed / scale", "normed * scale", UNDECIDED, "there is no ground truth of quantising norms",
    ),
    Bug(
        QUANTISED, "flashinfer-ai/flashinfer#4805", "what is beyond the largest number of the dtype was not clamped",
        ".clamp(-448, 448)", "", UNDECIDED, "as above",
    ),
    Bug(
        GROUPED, "fla-org/flash-linear-attention#297", "the reference of the group norm returned the wrong residual",
        "rows.to(residual.dtype)", "residual.clone()", UNDECIDED, "there is no ground truth of group norms",
    ),
    Bug(
        like("fused_add_rmsnorm_h5120", axes={"hidden_size": 4096}, tags={"model:qwen3-14b": "model:qwen3-32b"}),
        " ".join(f"flashinfer-ai/flashinfer-bench#{number}" for number in (237, 239, 240, 262, 334)),
        "of the same definitions: Qwen3-32B was given a hidden size of 4096; it has 5120", None, None, CAUGHT,
        "the table of models has the hidden size of each model",
    ),
    Bug(
        "gelu_tanh_and_mul_h21504", "vllm-project/vllm#3411 google/gemma_pytorch#37 huggingface/transformers#29402",
        "Gemma's activation was the exact GELU, not its approximation by tanh",
        'F.gelu(gate, approximate="tanh")', "F.gelu(gate)", CAUGHT, "they part by 5e-4, where bfloat16 still shows it",
    ),
    Bug(
        "gemm_n4096_k4096", "meta-pytorch/tritonbench#98",
        "each implementation drew weights of its own, so that what was compared was never the same product",
        "B.float().T", "torch.randn_like(B.float()).T", CAUGHT, "the second factor is an input",
    ),
    Bug(
        "llama31_rope_pos_ids_h32_kv8_d128", "huggingface/transformers#32330",
        "Llama 3.1's frequencies were worked out and the plain ones returned",
        "frequencies = part * fast + (1 - part) * slow", "frequencies = fast", CAUGHT, "slow frequencies differ by 8",
    ),
    Bug(
        "rope_pos_ids_interleaved_given_d64", "vllm-project/vllm#49290 vllm-project/vllm-ascend#12765",
        "the flag for interleaved pairs was ignored: halves were always paired",
        INTERLEAVED, INTERLEAVED.replace("interleave)", "False)"), CAUGHT, "the flag takes both values",
    ),
    Bug(
        "rope_pos_ids_h32_kv8_d128", "huggingface/transformers#29285 google/gemma_pytorch#37",
        "positions and frequencies were multiplied in 16 bits",
        "pos_ids.float()[:, None, None] * frequencies",
        "(pos_ids.to(q.dtype)[:, None, None] * frequencies.to(q.dtype)).float()",
        CAUGHT, "positions beyond 256 are no longer exact in bfloat16",
    ),
]
