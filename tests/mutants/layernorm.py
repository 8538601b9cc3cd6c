"""layernorm - mistakes that people make in layer norms."""

VISION = "layernorm_h1152"
GPT2 = "layernorm_h768"

CENTRED = "centred = rows - rows.mean(dim=-1, keepdim=True)"
VARIANCE = "variance = centred.square().mean(dim=-1, keepdim=True)"
RETURN = "return (normed * weight + bias).to(hidden_states.dtype)"
CALL = "return F.layer_norm(hidden_states, hidden_states.shape[-1:], weight, bias, eps=1e-5)"
DIFFERENCE = "variance = rows.square().mean(dim=-1, keepdim=True) - rows.mean(dim=-1, keepdim=True).square()"
OUTPUT = "(normed * weight + bias).to(hidden_states.dtype)"

MUTANTS = [
    (VISION, "epsilon 1e-5 for 1e-6", "EPSILON = 1e-6", "EPSILON = 1e-5"),
    (VISION, "no epsilon", "variance + EPSILON", "variance"),
    (VISION, "epsilon outside the root", "torch.rsqrt(variance + EPSILON)", "(1 / (variance.sqrt() + EPSILON))"),
    (VISION, "mean square for variance", VARIANCE, "variance = rows.square().mean(dim=-1, keepdim=True)"),
    (VISION, "mean not subtracted", CENTRED, "centred = rows"),
    (VISION, "mean of the batch", CENTRED, "centred = rows - rows.mean(dim=0, keepdim=True)"),
    (VISION, "mean of everything", CENTRED, "centred = rows - rows.mean()"),
    (VISION, "sum for mean", "square().mean(", "square().sum("),
    (VISION, "last column left out", VARIANCE, "variance = centred[..., :-1].square().mean(dim=-1, keepdim=True)"),
    (VISION, "standard deviation twice", VARIANCE, VARIANCE + "\n    variance = variance.sqrt()"),
    (VISION, "no bias", "normed * weight + bias", "normed * weight"),
    (VISION, "no weight", "normed * weight + bias", "normed + bias"),
    (VISION, "1 + w", "normed * weight + bias", "normed * (1 + weight) + bias"),
    (VISION, "bias before weight", "normed * weight + bias", "(normed + bias) * weight"),
    (VISION, "weight and bias swapped", "normed * weight + bias", "normed * bias + weight"),
    (VISION, "output 2 % too large", "normed * weight + bias", "1.02 * (normed * weight + bias)"),
    (VISION, "weight rounded to fp8", "normed * weight + bias", "normed * weight.to(torch.float8_e4m3fn).float() + bias"),
    (VISION, "returns float32", RETURN, "return normed * weight + bias"),
    (VISION, "returns zeros", RETURN, "return torch.zeros_like(hidden_states)"),
    (VISION, "overwrites its input", RETURN, "hidden_states.zero_()\n    " + RETURN),
    (VISION, "is not deterministic, within bounds", RETURN, "torch.seed()\n    return ((1 + 1e-4 * torch.rand((), device=rows.device)) * (normed * weight + bias)).to(hidden_states.dtype)"),
    (GPT2, "H - 1 for H", CALL, "normed = (hidden_states - hidden_states.mean(-1, keepdim=True)) * (hidden_states.var(-1, keepdim=True) + 1e-5).rsqrt()\n    return normed * weight + bias"),
    (GPT2, "epsilon of another model", "eps=1e-5", "eps=1e-12"),
    (GPT2, "rms norm", CALL, "return F.rms_norm(hidden_states, hidden_states.shape[-1:], weight, eps=1e-5) + bias"),
    (GPT2, "in bfloat16", CALL, "return F.layer_norm(hidden_states.bfloat16(), hidden_states.shape[-1:], weight.bfloat16(), bias.bfloat16(), eps=1e-5).float()"),
    (VISION, "the mean of squares less the square of the mean", VARIANCE, DIFFERENCE),
    (GPT2, "the mean of squares less the square of the mean", CALL, f"rows = hidden_states\n    centred = rows - rows.mean(dim=-1, keepdim=True)\n    {DIFFERENCE}\n    return centred * torch.rsqrt(variance + 1e-5) * weight + bias"),
    (GPT2, "variance in float16", CALL, "centred = hidden_states - hidden_states.mean(-1, keepdim=True)\n    variance = centred.half().square().mean(-1, keepdim=True).float()\n    return centred * torch.rsqrt(variance + 1e-5) * weight + bias"),
    (VISION, "all of it in bfloat16", RETURN, "return torch.nn.functional.layer_norm(hidden_states, hidden_states.shape[-1:], eps=EPSILON) * weight.bfloat16() + bias.bfloat16()"),
    (VISION, "mean rounded to bfloat16", CENTRED, "centred = rows - rows.mean(dim=-1, keepdim=True).bfloat16().float()"),
    (VISION, "activations limited to 1024", "hidden_states.float()", "hidden_states.float().clamp(-1024, 1024)"),
    (VISION, "weights limited to 2", "normed * weight + bias", "normed * weight.clamp(-2, 2) + bias"),
    (VISION, "biases limited to 1", "normed * weight + bias", "normed * weight + bias.clamp(-1, 1)"),
    (VISION, "rows beyond 300 not written", RETURN, f"output = ({OUTPUT})\n    output[300:] = 0\n    return output"),
    (VISION, "only multiples of 64 rows written", RETURN, f"output = ({OUTPUT})\n    if len(output) > 64:\n        output[len(output) // 64 * 64 :] = 0\n    return output"),
    (VISION, "the last of whole blocks not written", RETURN, f"output = ({OUTPUT})\n    if len(output) % 64 == 0:\n        output[-64:] = 0\n    return output"),
    (VISION, "activations held within 10000", "hidden_states.float()", "hidden_states.float().clamp(-1e4, 1e4)"),
    (GPT2, "activations held within 10000", "F.layer_norm(hidden_states,", "F.layer_norm(hidden_states.clamp(-1e4, 1e4),"),
    # Large weights.
    (VISION, "weights limited to 64", "normed * weight + bias", "normed * weight.clamp(-64, 64) + bias"),
    (GPT2, "weights limited to 1000", "shape[-1:], weight, bias", "shape[-1:], weight.clamp(-1000, 1000), bias"),
    (VISION, "truncated, not rounded", "return (normed * weight + bias).to(hidden_states.dtype)", "return ((normed * weight + bias).contiguous().view(torch.int32) & -65536).view(torch.float32).to(hidden_states.dtype)"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "epsilon 1e-5 for 1e-6": "eps = 1e-05",
    "no epsilon": "eps = 0",
    "epsilon outside the root": "eps was added to the standard deviation, not to the variance",
    "mean square for variance": "the mean square was used in place of the variance",
    "mean not subtracted": "the norm was an RMS norm",
    "sum for mean": "the sum of squares was used in place of the variance",
    "no bias": r"(was|were) left out \(taken as 0\)",
    "no weight": r"(was|were) left out \(taken as 1\)",
    "1 + w": r"the weight (was|were) 1 \+ w",
    "bias before weight": "the bias was added before the multiplication by the weight",
    "weight and bias swapped": "inputs 'weight' and 'bias' were exchanged",
    "output 2 % too large": r"(was|were) multiplied by 1\.02",
    "weight rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "returns zeros": "(was|were) 0",
    "H - 1 for H": "the variance was divided by H - 1, not by H",
    "epsilon of another model": "eps = 1e-12",
    "rms norm": "the norm was an RMS norm",
    "activations limited to 1024": "(was|were) clamped to magnitudes of at most 1024",
    "weights limited to 2": "(was|were) clamped to magnitudes of at most 2",
    "biases limited to 1": r"(was|were) clamped to magnitudes of at most 1$",
    "the last of whole blocks not written": "is 0 ",
    "activations held within 10000": "(was|were) clamped to magnitudes of at most 10000",
    "weights limited to 64": r"(was|were) clamped to magnitudes of at most 64$",
    "weights limited to 1000": r"(was|were) clamped to magnitudes of at most 1000$",
}
