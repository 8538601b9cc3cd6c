"""rmsnorm - mistakes that people make in references of rmsnorm and fused_add_rmsnorm."""

SQUARE = "mean_square = rows.square().mean(dim=-1, keepdim=True)"
RETURN = "return (normed * weight.float()).to(hidden_states.dtype)"
SUM = "rows = hidden_states.float() + residual.float()"
RETURN_SUM = "return output.to(hidden_states.dtype), rows.to(residual.dtype)"
FP8 = ".to(torch.float8_e4m3fn).float()"
OUTPUT = "(normed * weight.float()).to(hidden_states.dtype)"

MUTANTS = [
    ("rmsnorm_h4096", "epsilon 1e-6 for 1e-5", "EPSILON = 1e-5", "EPSILON = 1e-6"),
    ("rmsnorm_h7168", "epsilon 1e-5 for 1e-6", "EPSILON = 1e-6", "EPSILON = 1e-5"),
    ("rmsnorm_h7168", "no epsilon", "mean_square + EPSILON", "mean_square"),
    ("rmsnorm_h2048", "epsilon outside the root", "torch.rsqrt(mean_square + EPSILON)", "(torch.rsqrt(mean_square) + EPSILON)"),
    ("rmsnorm_h4096", "variance for mean square", SQUARE, "mean_square = rows.var(dim=-1, keepdim=True, unbiased=False)"),
    ("rmsnorm_h4096", "sum for mean", SQUARE, "mean_square = rows.square().sum(dim=-1, keepdim=True)"),
    ("rmsnorm_h4096", "weights as 1 + w", RETURN, "return (normed * (1 + weight.float())).to(hidden_states.dtype)"),
    ("rmsnorm_h4096", "no weights", RETURN, "return normed.to(hidden_states.dtype)"),
    ("rmsnorm_h7168", "last column left out", SQUARE, "mean_square = rows[..., :-1].square().mean(dim=-1, keepdim=True)"),
    ("rmsnorm_h7168", "first column left out", SQUARE, "mean_square = rows[..., 1:].square().mean(dim=-1, keepdim=True)"),
    (
        "rmsnorm_h7168",
        "column 3333 left out",
        SQUARE,
        "mean_square = (rows.square().sum(dim=-1, keepdim=True) - rows[..., 3333:3334].square()) / rows.shape[-1]",
    ),
    ("rmsnorm_h2048", "output 1 % too large", RETURN, "return (1.01 * normed * weight.float()).to(hidden_states.dtype)"),
    ("rmsnorm_h1536", "activations rounded to fp8", "rows = hidden_states.float()", f"rows = hidden_states.float(){FP8}"),
    ("rmsnorm_h128", "weights rounded to fp8", "weight.float()", f"weight.float(){FP8}"),
    ("rmsnorm_h128", "norm over the batch", "dim=-1", "dim=0"),
    ("rmsnorm_h128", "returns float32", RETURN, "return normed * weight.float()"),
    ("rmsnorm_h128", "returns a flat tensor", RETURN, RETURN + ".flatten()"),
    ("rmsnorm_h128", "returns zeros", RETURN, "return torch.zeros_like(hidden_states)"),
    ("rmsnorm_h128", "returns NaN", RETURN, "return torch.full_like(hidden_states, float('nan'))"),
    (
        "rmsnorm_h2048",
        "is not deterministic, within bounds",
        RETURN,
        "torch.seed()\n    return (normed * (1 + 1e-4 * torch.rand((), device=rows.device)) * weight.float()).to(hidden_states.dtype)",
    ),
    ("rmsnorm_h128", "overwrites its input", RETURN, "hidden_states.mul_(2)\n    " + RETURN),
    ("rmsnorm_h128", "returns its input", RETURN, "return hidden_states"),
    ("rmsnorm_h128", "raises", RETURN, "raise ValueError('no')"),
    ("fused_add_rmsnorm_h4096", "residual left out", SUM, "rows = hidden_states.float()"),
    ("fused_add_rmsnorm_h7168", "sum rounded before the mean", SUM, "rows = (hidden_states + residual).float()"),
    ("fused_add_rmsnorm_h5120", "residual subtracted", SUM, "rows = hidden_states.float() - residual.float()"),
    ("fused_add_rmsnorm_h5120", "residual returned unchanged", RETURN_SUM, "return output.to(hidden_states.dtype), residual.clone()"),
    ("fused_add_rmsnorm_h5120", "outputs swapped", RETURN_SUM, "return rows.to(residual.dtype), output.to(hidden_states.dtype)"),
    ("fused_add_rmsnorm_h5120", "one output of two", RETURN_SUM, "return output.to(hidden_states.dtype)"),
    ("fused_add_rmsnorm_h7168", "residual added after the norm", "return output.to(hidden_states.dtype)", "return (output + residual.float()).to(hidden_states.dtype)"),
    ("rmsnorm_h7168", "rows beyond 300 not written", RETURN, f"output = ({OUTPUT})\n    output[300:] = 0\n    return output"),
    ("rmsnorm_h7168", "only multiples of 64 rows written", RETURN, f"output = ({OUTPUT})\n    if len(output) > 64:\n        output[len(output) // 64 * 64 :] = 0\n    return output"),
    ("rmsnorm_h7168", "the last of whole blocks not written", RETURN, f"output = ({OUTPUT})\n    if len(output) % 32 == 0:\n        output[-32:] = 0\n    return output"),
    ("rmsnorm_h2048", "cut at 512 rows", RETURN, f"output = ({OUTPUT})\n    output[512:] = 0\n    return output"),
    ("rmsnorm_h7168", "squares in float16", SQUARE, "mean_square = rows.half().square().mean(dim=-1, keepdim=True).float()"),
    ("rmsnorm_h7168", "all of it in bfloat16", "rows = hidden_states.float()", "rows = hidden_states"),
    ("rmsnorm_h7168", "activations limited to 1024", "hidden_states.float()", "hidden_states.float().clamp(-1024, 1024)"),
    ("rmsnorm_h7168", "weights limited to 2", "weight.float()", "weight.float().clamp(-2, 2)"),
    ("fused_add_rmsnorm_h5120", "updated residual limited to 2048", RETURN_SUM, "return output.to(hidden_states.dtype), rows.clamp(-2048, 2048).to(residual.dtype)"),
    ("fused_add_rmsnorm_h4096", "the sum held within float16", RETURN_SUM, "return output.to(hidden_states.dtype), rows.clamp(-65504, 65504).to(residual.dtype)"),
    ("rmsnorm_h4096", "activations held within 10000", "hidden_states.float()", "hidden_states.float().clamp(-1e4, 1e4)"),
]

# The words of the diagnosis that names a mistake (diagnoses.py), as regular expressions.
DIAGNOSES = {
    "epsilon 1e-6 for 1e-5": "eps = 1e-06",
    "epsilon 1e-5 for 1e-6": "eps = 1e-05",
    "no epsilon": "eps = 0",
    "epsilon outside the root": "eps were added to 1 / root, not to the mean square",
    "variance for mean square": "the variance were used for the mean square",
    "sum for mean": "the sum of squares were used for their mean",
    "weights as 1 + w": r"the weight were 1 \+ w",
    "no weights": r"were left out \(taken as 1\)",
    "output 1 % too large": r"were multiplied by 1\.01",
    "weights rounded to fp8": "were rounded to float8_e4m3fn",
    "returns zeros": "were 0",
    "returns its input": "were the unchanged input 'hidden_states'",
    "residual left out": r"were left out \(taken as 0\)",
    "sum rounded before the mean": "hidden state plus residual were rounded before the norm",
    "residual subtracted": "the sign of input 'residual' were reversed",
    "residual returned unchanged": "were the unchanged input 'residual'",
    "outputs swapped": "outputs 'output' and 'residual_out' were exchanged",
    "residual added after the norm": "were added to output 'output'",
    "activations limited to 1024": "were limited to magnitudes of 1024",
    "weights limited to 2": "were limited to magnitudes of 2",
    "updated residual limited to 2048": "were limited to magnitudes of 2048",
    "returns NaN": "is NaN everywhere",
    "the last of whole blocks not written": "is 0 ",
}
