"""others - bugs that shipped in quantisation and scans."""
from bug import CAUGHT, UNDECIDED, Bug, definition

SCAN = definition(
    "cumsum", "cumsum_exclusive_n512", {"rows": None, "columns": 512}, {"x": ("float32", "rows", "columns")},
    {"sums": ("float32", "rows", "columns")},
    """
def run(x):
    shifted = torch.cat((torch.zeros_like(x[:, :1]), x), dim=1)[:, :-1]
    return torch.cumsum(shifted, dim=1)
""",
)
MXFP8 = definition(
    "mxfp8_gemm", "mxfp8_gemm_n128_k256", {"M": None, "N": 128, "K": 256, "K_blocks": 8},
    {
        "A": ("float8_e4m3fn", "M", "K"),
        "A_scale": ("uint8", "M", "K_blocks"),
        "B": ("float8_e4m3fn", "N", "K"),
        "B_scale": ("uint8", "N", "K_blocks"),
    },
    {"C": ("float32", "M", "N")},
    """
def factors(scale):
    return torch.exp2(scale.float() - 127).repeat_interleave(32, dim=1)


@torch.no_grad()
def run(A, A_scale, B, B_scale):
    return (A.float() * factors(A_scale)) @ (B.float() * factors(B_scale)).T
""",
)
ROUND_TRIP = definition(
    "mxfp8_quantize", "mxfp8_round_trip_n256", {"K": None, "N": 256}, {"B": ("bfloat16", "K", "N")},
    {"dequantised": ("float32", "K", "N")},
    """
def run(B):
    rows = B.float()
    blocks = torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % 32)).unflatten(0, (-1, 32))
    largest = blocks.abs().amax(dim=1, keepdim=True).clamp(min=1e-30)
    scale = torch.exp2(torch.floor(torch.log2(largest)) - 8)
    quantised = (blocks / scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() * scale
    return quantised.flatten(0, 1)[: len(rows)]
""",
)
COLUMNS = """
    blocks = torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % 32)).unflatten(0, (-1, 32))
    largest = blocks.abs().amax(dim=1, keepdim=True).clamp(min=1e-30)
"""
ACROSS = """
    blocks = torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % 32)).unflatten(0, (-1, 32))
    largest = blocks.unflatten(2, (-1, 32)).abs().amax(dim=3).repeat_interleave(32, dim=2).clamp(min=1e-30)
"""
FP4 = definition(
    "fp4_quantize", "nvfp4_quantize_k256", {"M": None, "K": 256, "K_blocks": 16},
    {"x": ("bfloat16", "M", "K"), "global_scale": ("float32",)},
    {"levels": ("float32", "M", "K"), "scales": ("float8_e4m3fn", "M", "K_blocks")},
    """
def run(x, global_scale):
    blocks = x.float().unflatten(1, (-1, 16))
    wanted = blocks.abs().amax(dim=-1) / 6 * global_scale
    scales = wanted.clamp(max=448).to(torch.float8_e4m3fn)
    steps = (blocks * global_scale / scales.float().clamp(min=1e-30)[..., None]).clamp(-6, 6)
    levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=x.device)
    nearest = (steps.abs()[..., None] - levels).abs().argmin(dim=-1)
    return (levels[nearest] * steps.sign()).flatten(1), scales
""",
)

BUGS = [
    Bug(
        SCAN,
        "ScalingIntelligence/KernelBench#72 ScalingIntelligence/KernelBench#109 ScalingIntelligence/KernelBench#63",
        "an exclusive cumulative sum cut the last row off, not the last column",
        "dim=1)[:, :-1]", "dim=1)[:-1]", CAUGHT, "the shape is not the declared one, whatever the numbers are",
    ),
    Bug(
        MXFP8, "flashinfer-ai/flashinfer#3882",
        "scales were multiplied as the numbers of their bytes; each is an exponent, 2^(byte - 127)",
        "torch.exp2(scale.float() - 127)", "scale.float()", UNDECIDED, "there is no ground truth of MXFP8 products",
    ),
    Bug(
        ROUND_TRIP, "flashinfer-ai/flashinfer#3882 flashinfer-ai/flashinfer#3814",
        "the second factor was quantised in blocks along n, not along k, over which the product sums",
        COLUMNS, ACROSS, UNDECIDED, "there is no ground truth of quantising",
    ),
    Bug(
        FP4, "flashinfer-ai/flashinfer#3221", "the global scale was lost on the way to the scales of the blocks",
        "/ 6 * global_scale", "/ 6", UNDECIDED, "there is no ground truth of quantising",
    ),
]
