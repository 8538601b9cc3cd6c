"""gemma_rmsnorm - mistakes that people make in Gemma's norms."""

PLAIN = "gemma_rmsnorm_h5376"
FUSED = "gemma_fused_add_rmsnorm_h4608"

RETURN = "return (normed * (1 + weight.float())).to(hidden_states.dtype)"
SQUARE = "mean_square = rows.square().mean(dim=-1, keepdim=True)"
SUM = "rows = hidden_states.float() + residual.float()"
RETURN_SUM = "return output.to(hidden_states.dtype), rows.to(residual.dtype)"
OUTPUT = "(normed * (1 + weight.float())).to(hidden_states.dtype)"

MUTANTS = [
    (PLAIN, "w for 1 + w", "(1 + weight.float())", "weight.float()"),
    (PLAIN, "1 - w", "(1 + weight.float())", "(1 - weight.float())"),
    (PLAIN, "no weight", RETURN, "return normed.to(hidden_states.dtype)"),
    (PLAIN, "w added after the norm", RETURN, "return (normed + weight.float()).to(hidden_states.dtype)"),
    (PLAIN, "epsilon 1e-5 for 1e-6", "EPSILON = 1e-6", "EPSILON = 1e-5"),
    (PLAIN, "no epsilon", "mean_square + EPSILON", "mean_square"),
    (PLAIN, "epsilon outside the root", "torch.rsqrt(mean_square + EPSILON)", "(1 / (mean_square.sqrt() + EPSILON))"),
    (PLAIN, "variance for mean square", SQUARE, "mean_square = rows.var(dim=-1, keepdim=True, unbiased=False)"),
    (PLAIN, "sum for mean", "square().mean(", "square().sum("),
    (PLAIN, "norm over the batch", "mean(dim=-1", "mean(dim=0"),
    (PLAIN, "last column left out", "rows.square().mean", "rows[..., :-1].square().mean"),
    (PLAIN, "output 1 % too large", "return (normed", "return (1.01 * normed"),
    (PLAIN, "activations rounded to fp8", "hidden_states.float()", "hidden_states.to(torch.float8_e4m3fn).float()"),
    (PLAIN, "returns zeros", RETURN, "return torch.zeros_like(hidden_states)"),
    (PLAIN, "returns NaN", RETURN, "return torch.full_like(hidden_states, float('nan'))"),
    (PLAIN, "overwrites its weight", RETURN, "weight.add_(1)\n    return (normed * weight.float()).to(hidden_states.dtype)"),
    (PLAIN, "is not deterministic, within bounds", "return (normed", "torch.seed()\n    return ((1 + 1e-4 * torch.rand((), device=rows.device)) * normed"),
    (FUSED, "w for 1 + w", "(1 + weight.float())", "weight.float()"),
    (FUSED, "residual left out", SUM, "rows = hidden_states.float()"),
    (FUSED, "sum rounded before the mean", SUM, "rows = (hidden_states + residual).float()"),
    (FUSED, "residual subtracted", SUM, "rows = hidden_states.float() - residual.float()"),
    (FUSED, "residual returned unchanged", RETURN_SUM, "return output.to(hidden_states.dtype), residual.clone()"),
    (FUSED, "outputs swapped", RETURN_SUM, "return rows.to(residual.dtype), output.to(hidden_states.dtype)"),
    (FUSED, "residual takes the norm", RETURN_SUM, "return output.to(hidden_states.dtype), output.to(residual.dtype)"),
    (PLAIN, "rows beyond 300 not written", RETURN, f"output = ({OUTPUT})\n    output[300:] = 0\n    return output"),
    (PLAIN, "only multiples of 64 rows written", RETURN, f"output = ({OUTPUT})\n    if len(output) > 64:\n        output[len(output) // 64 * 64 :] = 0\n    return output"),
    (PLAIN, "the last of whole blocks not written", RETURN, f"output = ({OUTPUT})\n    if len(output) % 32 == 0:\n        output[-32:] = 0\n    return output"),
    (PLAIN, "squares in float16", SQUARE, "mean_square = rows.half().square().mean(dim=-1, keepdim=True).float()"),
    (PLAIN, "all of it in bfloat16", RETURN, "rows = hidden_states\n    return rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + EPSILON) * (1 + weight)"),
    (PLAIN, "weights limited to 1", "1 + weight.float()", "1 + weight.float().clamp(-1, 1)"),
    (PLAIN, "1 + w kept above 0", "(1 + weight.float())", "(1 + weight.float()).relu()"),
    (PLAIN, "activations limited to 1024", "hidden_states.float()", "hidden_states.float().clamp(-1024, 1024)"),
    (PLAIN, "weights of a mean beyond 0.5 taken as they are", "(1 + weight.float())", "((weight.float().mean() <= 0.5) + weight.float())"),
    (FUSED, "weights of a mean near 0 taken for no 1 + w", "(1 + weight.float())", "((weight.float().mean() > 0.5) + weight.float())"),
    (FUSED, "the sum held within float16", RETURN_SUM, "return output.to(hidden_states.dtype), rows.clamp(-65504, 65504).to(residual.dtype)"),
    (PLAIN, "activations held within float16", "hidden_states.float()", "hidden_states.float().clamp(-65504, 65504)"),
    # The next mistakes are roundings that only the "exact row" of inputs in kernels/common/norm/rms_input_values.h
    # reveals, and mistakes that only large weights reveal.
    (PLAIN, "1 + w in bfloat16", "(1 + weight.float())", "(1 + weight)"),
    (PLAIN, "the normed row rounded to bfloat16 before the product", "normed * (1 + weight.float())", "normed.bfloat16().float() * (1 + weight.float())"),
    (FUSED, "1 + w in bfloat16", "(1 + weight.float())", "(1 + weight).float()"),
    (FUSED, "the normed row rounded to bfloat16 before the product", "torch.rsqrt(mean_square + EPSILON) *", "torch.rsqrt(mean_square + EPSILON)\n    output = output.bfloat16().float() *"),
    (PLAIN, "weights limited to 64", "1 + weight.float()", "1 + weight.float().clamp(-64, 64)"),
    (FUSED, "weights limited to 512", "1 + weight.float()", "1 + weight.float().clamp(-512, 512)"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "w for 1 + w": r"the weight (was|were) w, not 1 \+ w",
    "1 - w": "the sign of input 'weight' was reversed",
    "no weight": r"(was|were) left out \(taken as 0\)",
    "epsilon 1e-5 for 1e-6": "eps = 1e-05",
    "no epsilon": "eps = 0",
    "variance for mean square": "the variance was used in place of the mean square",
    "sum for mean": "the sum of squares was used in place of their mean",
    "output 1 % too large": r"(was|were) multiplied by 1\.01",
    "returns zeros": "(was|were) 0",
    "residual left out": r"(was|were) left out \(taken as 0\)",
    "sum rounded before the mean": "the sum of hidden state and residual was rounded before the norm",
    "residual subtracted": "the sign of input 'residual' was reversed",
    "residual returned unchanged": "(was|were) the unchanged input 'residual'",
    "outputs swapped": "outputs 'output' and 'residual_out' were exchanged",
    "weights limited to 1": r"(was|were) clamped to magnitudes of at most 1$",
    "activations limited to 1024": "(was|were) clamped to magnitudes of at most 1024",
    "returns NaN": "is NaN everywhere",
    "the last of whole blocks not written": "is 0 ",
    "the sum held within float16": "(was|were) clamped to magnitudes of at most 65536",  # what bfloat16 makes of 65504
    "activations held within float16": "(was|were) clamped to magnitudes of at most 65504",
    "weights limited to 64": r"(was|were) clamped to magnitudes of at most 64$",
    "weights limited to 512": r"(was|were) clamped to magnitudes of at most 512$",
}
