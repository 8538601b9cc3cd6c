"""recurrences - bugs that shipped in linear attention and other recurrences."""
from bug import CAUGHT, UNDECIDED, Bug, definition

CHUNKED = "gated_delta_rule_chunk_varlen_gate_h2_hv4_k64_v128"
MAMBA = "mamba_ssu_decode_h32_d64_s128_ng2"
LEFT = "torch.exp((total[..., :, None] - total[..., None, :]).clamp(max=0)).tril()"
UNMASKED = "torch.exp(total[..., :, None] - total[..., None, :]) * q.new_ones(q.shape[1], q.shape[1]).tril()"

AXES = {"batch_size": None, "seq_len": None, "num_heads": 4, "head_size": 64}
TOKENS = ("float32", "batch_size", "seq_len", "num_heads", "head_size")

LINEAR = definition(
    "linear_attn", "linear_attn_normalised_h4_d64", AXES, {"q": TOKENS, "k": TOKENS, "v": TOKENS}, {"output": TOKENS},
    """
def run(q, k, v):
    q, k = torch.exp(q - q.amax(-1, keepdim=True)), torch.exp(k - k.amax(-1, keepdim=True))
    scores = torch.einsum("bihd,bjhd->bhij", q, k).tril()
    output = torch.einsum("bhij,bjhd->bihd", scores, v)
    normaliser = k.cumsum(dim=1)
    return output / ((q * normaliser).sum(dim=-1, keepdim=True) + 1e-10)
""",
)
RESTARTED = "torch.cat([part.cumsum(dim=1) for part in k.split(64, dim=1)], dim=1)"

DELTAFORMER = definition(
    "deltaformer", "deltaformer_h4_d64", AXES, {"q": TOKENS, "k": TOKENS, "v": TOKENS}, {"output": TOKENS},
    """
def run(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scale = q.shape[-1] ** -0.5
    u = v.clone()
    for t in range(1, v.shape[2]):
        weights = torch.softmax((k[:, :, t : t + 1] @ k[:, :, :t].mT) * scale, dim=-1)
        u[:, :, t] = v[:, :, t] - (weights @ u[:, :, :t])[:, :, 0]
    unseen = torch.ones(v.shape[2], v.shape[2], dtype=torch.bool, device=v.device).triu(1)
    o = torch.softmax((q @ k.mT * scale).masked_fill(unseen, float("-inf")), dim=-1) @ u
    return o.transpose(1, 2).contiguous()
""",
)

RWKV6 = definition(
    "rwkv6", "rwkv6_recurrent_h4_d64", AXES,
    {"r": TOKENS, "k": TOKENS, "v": TOKENS, "w": TOKENS, "u": ("float32", "num_heads", "head_size")},
    {"output": TOKENS},
    """
def run(r, k, v, w, u):
    decay = torch.exp(-torch.exp(w))
    query = r
    state = torch.zeros(*r.shape[::2][:1], *r.shape[2:], v.shape[-1], device=r.device)
    output = torch.empty_like(v)
    for t in range(r.shape[1]):
        added = k[:, t, :, :, None] * v[:, t, :, None, :]
        output[:, t] = (query[:, t, :, :, None] * (state + u[..., None] * added)).sum(dim=2)
        state = decay[:, t, :, :, None] * state + added
    return output
""",
)

BUGS = [
    Bug(
        "simple_gla_parallel_h4_d64", "gpu-mode/reference-kernels@9886f4e gpu-mode/reference-kernels@4ae0781",
        "the exponential was taken before the mask: for tokens to come it is inf, and inf times 0 is NaN",
        LEFT, UNMASKED, CAUGHT, "some gates are strong enough that the exponential overflows",
    ),
    Bug(
        CHUNKED, "flashinfer-ai/flashinfer#4311",
        "the state was carried on with the decay up to place 57 of a block of 64, not to its end",
        "state = since[:, -1:] * state", "state = since[:, :58][:, -1:] * state",
        CAUGHT, "sequences are longer than 58 tokens",
    ),
    Bug(
        "gdn_prefill_qk2_v4_d128_k_last", "flashinfer-ai/flashinfer#3572",
        "the logarithm of the decay was given where the decay itself is wanted",
        "decay = torch.exp(-torch.exp(A_log) * F.softplus(a.float() + dt_bias))",
        "decay = -torch.exp(A_log) * F.softplus(a.float() + dt_bias)", CAUGHT, "a decay is never negative",
    ),
    Bug(
        MAMBA, "ml-explore/mlx-lm#1153", "the bias of the step was added twice",
        "F.softplus(dt.float() + dt_bias.float())", "F.softplus(dt.float() + dt_bias.float() + dt_bias.float())",
        CAUGHT, "biases are not 0",
    ),
    Bug(
        MAMBA, "intel/intel-xpu-backend-for-triton#7008",
        "vLLM's test rounded the state to what the cache holds before it read the output from it",
        "y = (held * weight_out", "y = (held.to(state.dtype).float() * weight_out",
        CAUGHT, "sums over states that cancel show the rounding",
    ),
    Bug(
        MAMBA, "flashinfer-ai/flashinfer#2810 sgl-project/sglang#22818",
        "padding slots of -1 were written to, in a kernel of GDN decoding: the last state of the pool was lost",
        "new_state[slots[active]] = held[active].to(state.dtype)", "new_state[slots] = held.to(state.dtype)",
        CAUGHT, "some slots are padding",
    ),
    Bug(
        LINEAR, "fla-org/flash-linear-attention#850", "the normaliser's cumulative sum ran along the wrong axis",
        "k.cumsum(dim=1)", "k.cumsum(dim=2)", UNDECIDED, "there is no ground truth of normalised linear attention",
    ),
    Bug(
        LINEAR, "fla-org/flash-linear-attention#851", "the normaliser's cumulative sum restarted in each chunk",
        "k.cumsum(dim=1)", RESTARTED, UNDECIDED, "as above",
    ),
    Bug(
        DELTAFORMER, "fla-org/flash-linear-attention#602", "the naive form returned u, a step on the way, for o",
        "return o.transpose", "return u.transpose", UNDECIDED, "there is no ground truth of DeltaFormer",
    ),
    Bug(
        RWKV6, "fla-org/flash-linear-attention@e0e51fa6 fla-org/flash-linear-attention#12",
        "the naive form scaled the queries, which RWKV6 does not",
        "query = r\n", "query = r * r.shape[-1] ** -0.5\n", UNDECIDED, "there is no ground truth of RWKV6",
    ),
]
