"""cascade - mistakes that people make in merging attention states."""

TWO = "merge_state_h32_d128"
PLACE = "merge_state_in_place_h32_d128"
MANY = "merge_states_h8_d128"

WEIGHTS = "weight_a, weight_b = torch.exp2(s_a - largest), torch.exp2(s_b - largest)"
RETURN = "return v.to(v_a.dtype), largest + torch.log2(total)"
SUM = "v = v_a.float() * (weight_a / total)[..., None] + v_b.float() * (weight_b / total)[..., None]"

MUTANTS = [
    (TWO, "natural for base 2", WEIGHTS, "weight_a, weight_b = torch.exp(s_a - largest), torch.exp(s_b - largest)"),
    (TWO, "natural logarithm at the end", "torch.log2(total)", "torch.log(total)"),
    (TWO, "not normalised", SUM, "v = v_a.float() * weight_a[..., None] + v_b.float() * weight_b[..., None]"),
    (TWO, "averaged", SUM, "v = (v_a.float() + v_b.float()) / 2"),
    (TWO, "weights swapped", WEIGHTS, "weight_b, weight_a = torch.exp2(s_a - largest), torch.exp2(s_b - largest)"),
    (TWO, "largest not taken off", "largest = torch.maximum(s_a, s_b)", "largest = torch.zeros_like(s_a)"),
    (TWO, "the largest alone", WEIGHTS, "weight_a, weight_b = (s_a >= s_b).float(), (s_b > s_a).float()"),
    (TWO, "the largest for the logsumexp", RETURN, "return v.to(v_a.dtype), largest"),
    (TWO, "logsumexps added", RETURN, "return v.to(v_a.dtype), s_a + s_b"),
    (TWO, "second state ignored", SUM, "v = v_a.float()"),
    (TWO, "v 2 % too large", RETURN, "return (1.02 * v).to(v_a.dtype), largest + torch.log2(total)"),
    (TWO, "an epsilon in the sum", "total = weight_a + weight_b", "total = weight_a + weight_b + 0.05"),
    (TWO, "an empty state taken for 0", WEIGHTS, "s_a = s_a.nan_to_num(neginf=0.0)\n    " + WEIGHTS),
    (TWO, "v rounded to fp8", "v_b.float()", "v_b.to(torch.float8_e4m3fn).float()"),
    (TWO, "outputs swapped", RETURN, "return largest + torch.log2(total), v.to(v_a.dtype)"),
    (TWO, "returns zeros", RETURN, "return torch.zeros_like(v_a), torch.zeros_like(s_a)"),
    (TWO, "overwrites an input", RETURN, "v_a.copy_(v)\n    " + RETURN),
    (TWO, "is not deterministic, within bounds", RETURN, "torch.seed()\n    return (v * (1 + 1e-5 * torch.rand((), device=v.device))).to(v_a.dtype), largest + torch.log2(total) + 1e-5 * torch.rand((), device=v.device)"),
    (PLACE, "mask ignored", "torch.where(mask[:, None, None], sum_of_both.to(v.dtype), v)", "sum_of_both"),
    (PLACE, "mask the wrong way", "mask[:, None, None]", "~mask[:, None, None]"),
    (PLACE, "logsumexp of masked tokens merged too", "torch.where(mask[:, None], merged, s)", "merged"),
    (PLACE, "masked tokens set to zero", "sum_of_both.to(v.dtype), v)", "sum_of_both.to(v.dtype), torch.zeros_like(v))"),
    (PLACE, "natural logarithms", "torch.logaddexp2(s, s_other)", "torch.logaddexp(s, s_other)"),
    (PLACE, "overwrites the other state", "return v, s", "v_other.zero_()\n    return v, s"),
    (MANY, "base 2 taken for natural", "natural = s * math.log(2)", "natural = s"),
    (MANY, "natural logsumexp returned", "total / math.log(2)", "total"),
    (MANY, "last state left out", "total = torch.logsumexp(natural, dim=1)", "natural[:, -1] = float('-inf')\n    total = torch.logsumexp(natural, dim=1)"),
    (MANY, "averaged", "(v.float() * weights[..., None]).sum(dim=1)", "v.float().mean(dim=1)"),
    (MANY, "over the tokens", "torch.logsumexp(natural, dim=1)", "torch.logsumexp(natural.mean(dim=2, keepdim=True), dim=1).expand(-1, natural.shape[2])"),
    # The next mistakes show only if s has both signs, if values are both close and far apart, or if there are many
    # states or tokens. Mistakes in precision follow.
    (TWO, "the largest from 0 on", "torch.maximum(s_a, s_b)", "torch.maximum(s_a, s_b).clamp(min=0)"),
    (TWO, "far below taken for empty", WEIGHTS, "s_a, s_b = torch.where(s_a < -30, -torch.inf, s_a), torch.where(s_b < -30, -torch.inf, s_b)\n    " + WEIGHTS),
    (TWO, "logsumexps held above -100", WEIGHTS, "s_a, s_b = s_a.clamp(min=-100), s_b.clamp(min=-100)\n    largest = torch.maximum(s_a, s_b)\n    " + WEIGHTS),
    (TWO, "weights in bfloat16", WEIGHTS, WEIGHTS + "\n    weight_a, weight_b = weight_a.bfloat16().float(), weight_b.bfloat16().float()"),
    (TWO, "added up in bfloat16", SUM, "v = v_a * (weight_a / total)[..., None].bfloat16() + v_b * (weight_b / total)[..., None].bfloat16()"),
    (TWO, "the last token left out if the number of tokens is a multiple of 256", RETURN, "if len(v) % 256 == 0:\n        v[-1] = 0\n    " + RETURN),
    (TWO, "tokens beyond 300 left out", RETURN, "v[300:] = 0\n    " + RETURN),
    (PLACE, "the first token always merged", "merged = torch.logaddexp2(s, s_other)", "mask = mask.clone()\n    mask[0] = True\n    merged = torch.logaddexp2(s, s_other)"),
    (MANY, "the first eight states alone", "natural = s * math.log(2)", "s, v = s[:, :8], v[:, :8]\n    natural = s * math.log(2)"),
    (MANY, "the first sixteen states alone", "natural = s * math.log(2)", "s, v = s[:, :16], v[:, :16]\n    natural = s * math.log(2)"),
    (MANY, "added up in bfloat16", "(v.float() * weights[..., None]).sum(dim=1)", "(v * weights[..., None].bfloat16()).sum(dim=1)"),
    (PLACE, "merges values in place, and log-sum-exps in a copy", "s.copy_(torch.where(mask[:, None], merged, s))", "s = torch.where(mask[:, None], merged, s)"),
    ("merge_state_h32_d128", "a maximum that starts at -10000", "clamp(min=-1e30)",
     "clamp(min=-1e4)"),
    ("merge_states_h8_d128", "log-sum-exps limited to -10000 below", "natural = s * math.log(2)",
     "natural = torch.where(torch.isinf(s), s, s.clamp(min=-1e4)) * math.log(2)"),
    # The next mistakes are found because the inputs have large values where only one state has a weight above 0.
    (TWO, "values limited to 100", "v_a.float() * (weight_a / total)", "v_a.float().clamp(-100, 100) * (weight_a / total)"),
    (TWO, "values of the other limited to 65504", "v_b.float() * (weight_b / total)", "v_b.float().clamp(-65504, 65504) * (weight_b / total)"),
    (PLACE, "values limited to 448", "v.float() * mine", "v.float().clamp(-448, 448) * mine"),
    (MANY, "values limited to 65504", "(v.float() * weights", "(v.float().clamp(-65504, 65504) * weights"),
    # The next mistakes are found because the inputs have NaN in states that the mask excludes.
    (PLACE, "the other state multiplied by the mask", "v.copy_(torch.where(mask[:, None, None], sum_of_both.to(v.dtype), v))",
     "v.copy_((sum_of_both * mask[:, None, None] + v.float() * ~mask[:, None, None]).to(v.dtype))"),
    (MANY, "truncated, not rounded", "return merged.to(v.dtype)", "return ((merged).contiguous().view(torch.int32) & -65536).view(torch.float32).to(v.dtype)"),
    *((MANY, f"the first {n} states alone", "natural = s * math.log(2)", f"s, v = s[:, :{n}], v[:, :{n}]\n    natural = s * math.log(2)") for n in (64, 256)),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "natural for base 2": "weights were powers of e, not of 2",
    "natural logarithm at the end": "the logarithm of the sum of the weights was natural, not of base 2",
    "not normalised": "the merged v was not divided by the sum of the weights",
    "averaged": "states were averaged, without their weights",
    "weights swapped": "the weights of the two states were swapped",
    "the largest for the logsumexp": "the merged log-sum-exp was the largest log-sum-exp",
    "logsumexps added": "log-sum-exps were added",
    "second state ignored": "(was|were) the unchanged input 'v_a'",
    "v 2 % too large": r"(was|were) multiplied by 1\.02",
    "v rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "returns zeros": "every output was 0",
    "mask ignored": "the mask was ignored for v",
    "logsumexp of masked tokens merged too": "the mask was ignored for the log-sum-exp",
    "masked tokens set to zero": "v was 0 where the mask is false",
    "base 2 taken for natural": "log-sum-exps were read as natural logarithms, and the result was converted to base 2",
    "natural logsumexp returned": "the merged log-sum-exp was a natural logarithm, not of base 2",
    "last state left out": "the last state was left out",
    "logsumexps held above -100": "log-sum-exps were clamped to at least -100",
    "weights in bfloat16": "weights were rounded to bfloat16",
    "values limited to 100": "'v_a' was clamped to magnitudes of at most 100$",
    "values of the other limited to 65504": "'v_b' was clamped to magnitudes of at most 65504$",
    "the first eight states alone": "only the first 8 states were merged",
    "the first sixteen states alone": "only the first 16 states were merged",
    "the first 64 states alone": "only the first 64 states were merged",
    "the first 256 states alone": "only the first 256 states were merged",
    "log-sum-exps limited to -10000 below": "(was|were) clamped to magnitudes of at most 10000",
}
