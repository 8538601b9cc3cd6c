"""quantize_fp8_per_token_group - mistakes that people make when they quantise groups of channels to float8."""

DEEPSEEK = "quantize_fp8_per_token_group_h7168_g128"
HALF = "quantize_fp8_per_token_group_h256_g64"
LATENT = "quantize_fp8_per_token_group_h128_g128"

AMAX = "amax = groups.abs().amax(dim=-1, keepdim=True).clamp(min=EPS)"
SCALE = "scale = amax / FP8_MAX"
QUOTIENT = "(groups / scale).clamp(-FP8_MAX, FP8_MAX)"
CAST = QUOTIENT + ".to(torch.float8_e4m3fn)"
RETURN = "return q.view(tokens, hidden), scale.squeeze(-1)"
MULTIPLIED = "(groups * factor.unsqueeze(-1)).clamp(-limit, limit)"
LAST = "return (x * (448.0 / amax)).to(torch.float8_e4m3fn), amax * (1.0 / 448.0)"
STEP = "y = {}\n    step = torch.exp2(torch.floor(torch.log2(y.abs().clamp(min=2.0**-6))) - 3)\n    "

SMALLER = {
    DEEPSEEK: ("quantize_fp8_per_token_group_h1024_g128", {"hidden_size": 1024, "num_groups": 8}),
}
MUTANTS = [
    (DEEPSEEK, "largest magnitude of the row", "amax(dim=-1, keepdim=True)", "amax(dim=(1, 2), keepdim=True).expand(-1, hidden // 128, 1)"),
    (DEEPSEEK, "largest magnitude of the tensor", "amax(dim=-1, keepdim=True)", "amax().expand(tokens, hidden // 128, 1)"),
    (DEEPSEEK, "largest magnitude over the tokens", "amax(dim=-1, keepdim=True)", "amax(dim=0, keepdim=True).amax(dim=-1, keepdim=True).expand(tokens, -1, -1)"),
    (DEEPSEEK, "largest number for largest magnitude", "groups.abs().amax(", "groups.amax("),
    (DEEPSEEK, "smallest number for largest magnitude", AMAX, "amax = (-groups.amin(dim=-1, keepdim=True)).clamp(min=EPS)"),
    (DEEPSEEK, "240 for 448", "FP8_MAX = 448.0", "FP8_MAX = 240.0"),
    (DEEPSEEK, "scale inverted", "scale.squeeze(-1)", "1 / scale.squeeze(-1)"),
    (DEEPSEEK, "e5m2", CAST, QUOTIENT + ".to(torch.float8_e5m2).to(torch.float8_e4m3fn)"),
    (DEEPSEEK, "truncated", "q = " + CAST, STEP.format("groups / scale") + "q = ((y / step).trunc() * step).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)"),
    (DEEPSEEK, "ties away from zero", "q = " + CAST, STEP.format("groups / scale") + "q = ((y.abs() / step + 0.5).floor() * step * y.sign()).clamp(-FP8_MAX, FP8_MAX).to(torch.float8_e4m3fn)"),
    (DEEPSEEK, "groups begin one channel later", AMAX, AMAX.replace("groups.abs()", "groups.reshape(tokens, hidden).roll(-1, 1).view_as(groups).abs()")),
    (DEEPSEEK, "scale of the next group", RETURN, "return q.view(tokens, hidden), scale.squeeze(-1).roll(-1, 1)"),
    (DEEPSEEK, "divided by the scale of the previous group", "groups / scale", "groups / scale.roll(1, 1)"),
    (DEEPSEEK, "first half of the group looked at", "groups.abs()", "groups[..., : GROUP_SIZE // 2].abs()"),
    (DEEPSEEK, "last channel left out", "groups.abs()", "groups[..., :-1].abs()"),
    (DEEPSEEK, "first channel left out", "groups.abs()", "groups[..., 1:].abs()"),
    (DEEPSEEK, "scales by group first", "scale.squeeze(-1)", "scale.squeeze(-1).t().contiguous().view(tokens, -1)"),
    (DEEPSEEK, "groups of 64 with the scale of the first", AMAX, "amax = groups[..., :64].abs().amax(dim=-1, keepdim=True).clamp(min=EPS)"),
    (DEEPSEEK, "floor 1e-8", "EPS = 1e-10", "EPS = 1e-8"),
    (DEEPSEEK, "floor 1e-12", "EPS = 1e-10", "EPS = 1e-12"),
    (DEEPSEEK, "floor added", ".clamp(min=EPS)", " + EPS"),
    (DEEPSEEK, "floor of the scale", AMAX + "\n    " + SCALE, "scale = (groups.abs().amax(dim=-1, keepdim=True) / FP8_MAX).clamp(min=EPS)"),
    (DEEPSEEK, "no floor", ".clamp(min=EPS)", ""),
    (DEEPSEEK, "scale in bfloat16", SCALE, SCALE + "\n    scale = scale.bfloat16().float()"),
    (DEEPSEEK, "scale in bfloat16, stored in float32", "groups / scale", "groups / scale.bfloat16().float()"),
    (DEEPSEEK, "scale in float16", SCALE, SCALE + "\n    scale = scale.half().float()"),
    (DEEPSEEK, "scale a power of two", SCALE, SCALE + "\n    scale = torch.exp2(torch.ceil(torch.log2(scale)))"),
    (DEEPSEEK, "quotient in bfloat16", QUOTIENT, "(groups / scale).bfloat16().clamp(-FP8_MAX, FP8_MAX)"),
    (DEEPSEEK, "all in bfloat16", "x.float().view", "x.view"),
    (DEEPSEEK, "limited to 416", QUOTIENT, "(groups / scale).clamp(-416.0, 416.0)"),
    (DEEPSEEK, "not limited, and scaled for 480", QUOTIENT, "(groups / scale * (480.0 / 448.0))"),
    (DEEPSEEK, "subnormal numbers flushed", CAST, CAST.replace(".to(", ".where((groups / scale).abs() >= 2.0**-6, torch.zeros(())).to(")),
    (DEEPSEEK, "sign lost", QUOTIENT, QUOTIENT + ".abs()"),
    (DEEPSEEK, "returns scales of 1", RETURN, "return q.view(tokens, hidden), torch.ones_like(scale.squeeze(-1))"),
    (DEEPSEEK, "returns bytes of zero", RETURN, "return torch.zeros_like(q).view(tokens, hidden), scale.squeeze(-1)"),
    (DEEPSEEK, "overwrites its input", RETURN, "x.zero_()\n    " + RETURN),
    (DEEPSEEK, "rows beyond 300 not written", RETURN, "q[300:] = 0\n    " + RETURN),
    (DEEPSEEK, "the last of whole blocks not written", RETURN, "if tokens % 16 == 0:\n        scale[-16:] = 0\n    " + RETURN),
    (HALF, "groups of 128", "(-1, 64)", "(-1, 128)"),
    (HALF, "scale is the factor", "amax / limit", "factor"),
    (HALF, "in float16", "x.float()", "x"),
    (HALF, "quotient in float16", MULTIPLIED, MULTIPLIED + ".half()"),
    (HALF, "largest magnitudes limited to 1e4", "clamp_min(1e-10)", "clamp(1e-10, 1e4)"),
    (HALF, "floor 1e-5", "clamp_min(1e-10)", "clamp_min(1e-5)"),
    (HALF, "multiplied twice", "factor.unsqueeze(-1)", "factor.unsqueeze(-1).square()"),
    (LATENT, "floor 1e-10", "clamp(1e-4)", "clamp(1e-10)"),
    (LATENT, "over the tokens", "amax(dim=1, keepdim=True)", "amax(dim=0, keepdim=True).amax().expand(len(x), 1)"),
    (LATENT, "scale of the next token", LAST, "return (x * (448.0 / amax)).to(torch.float8_e4m3fn), (amax * (1.0 / 448.0)).roll(1, 0)"),
    (LATENT, "quotient rounded to bfloat16 first", "(448.0 / amax))", "(448.0 / amax)).bfloat16()"),
    (LATENT, "quotient rounded to float16 first", "(448.0 / amax))", "(448.0 / amax)).half()"),
    (LATENT, "0.1 % too large", "448.0 / amax", "448.448 / amax"),
    (LATENT, "input limited to 65504", "x.abs()", "x.clamp(-65504, 65504).abs()"),
    # The next mistakes show only if numbers in x have more digits than bfloat16 or float16 can represent.
    (LATENT, "largest magnitude in bfloat16", "x.abs().amax(", "x.abs().bfloat16().float().amax("),
    (LATENT, "largest magnitude with 16 bits", "x.abs().amax(", "(x.abs().view(torch.int32) & -256).view(torch.float32).amax("),
    (HALF, "scales of the first 4096 rows alone", "return amax / limit,", "amax[4096:] = limit\n    return amax / limit,"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "largest magnitude over the tokens": "the scale of a group was computed from the largest magnitude over all tokens",
    "largest number for largest magnitude": "the scale was computed from the largest number, not from the largest magnitude",
    "smallest number for largest magnitude": "the scale was computed from the smallest number, not from the largest magnitude",
    "240 for 448": "the largest number of float8_e4m3fn was assumed to be 240, not 448",
    "scale inverted": "the inverse of the scale was returned",
    "e5m2": "quotients were rounded to float8_e5m2",
    "truncated": "quotients were truncated, not rounded",
    "ties away from zero": "ties were rounded away from zero, not to even",
    "groups begin one channel later": "each group began one channel too late",
    "scale of the next group": "(was|were) shifted by one along axis 1",
    "divided by the scale of the previous group": "elements were divided by the scale of the previous group",
    "first half of the group looked at": "the scale of a group was computed only from the group's first half",
    "last channel left out": "the scale of a group was computed without the group's last channel",
    "first channel left out": "the scale of a group was computed without the group's first channel",
    "groups of 64 with the scale of the first": "the scale of a group was computed only from the group's first half",
    "floor 1e-8": "eps = 1e-08",
    "floor 1e-12": "eps = 1e-12",
    "floor added": "the floor was added to the largest magnitude, not used as its lower limit",
    "floor of the scale": "the floor was applied to the scale, not to the largest magnitude",
    "scale in bfloat16": "scales were rounded to bfloat16",
    "scale in bfloat16, stored in float32": "elements were divided by a scale rounded to bfloat16, not by the scale that is returned",
    "scale a power of two": "scales were rounded up to powers of two",
    "quotient in bfloat16": "quotients were rounded to bfloat16 first",
    "limited to 416": "quotients were limited to 416",
    "not limited, and scaled for 480": "groups were scaled so that the largest quotient is 480, not 448",
    "subnormal numbers flushed": r"subnormal quotients \(below 2\^-6\) were 0",
    "sign lost": "the sign of quotients was lost",
    "returns scales of 1": "every scale was 1",
    "scale is the factor": "the inverse of the scale was returned",
    "quotient in float16": "quotients were rounded to float16 first",
    "largest magnitudes limited to 1e4": "(was|were) clamped to magnitudes of at most 10000",
    "floor 1e-5": "eps = 1e-05",
    "multiplied twice": "elements were divided by the scale twice",
    "floor 1e-10": "eps = 1e-10",
    "over the tokens": "the scale was computed from the largest magnitude of the whole tensor|the scale of a group was computed from the largest magnitude over all tokens",
    "scale of the next token": "(was|were) shifted by one along axis 0",
    "quotient rounded to bfloat16 first": "quotients were rounded to bfloat16 first",
    "quotient rounded to float16 first": "quotients were rounded to float16 first",
    "input limited to 65504": "(was|were) clamped to magnitudes of at most 65504",
    "the last of whole blocks not written": "is 0 ",
    "largest magnitude of the row": "of the whole (row|tensor)",
    "largest magnitude of the tensor": "of the whole (row|tensor)",
}
