"""gqa_ragged - mistakes that people make in references of attention over concatenated sequences."""

C128 = "gqa_ragged_prefill_causal_h10_kv2_d128"
C256 = "gqa_ragged_prefill_causal_h8_kv4_d256"
FULL = "gqa_ragged_prefill_h16_kv16_d80"
QUERIES = "queries = q[rows].float().view(num_q, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)"
WEIGHTS = "weights = torch.softmax(logits, dim=-1)"
RETURN = "return output, lse"
FP8 = ".to(torch.float8_e4m3fn).float()"

SMALLER = {
    C256: ("gqa_ragged_prefill_causal_h4_kv2_d256", {"num_qo_heads": 4, "num_kv_heads": 2}),
    C128: ("gqa_ragged_prefill_causal_h10_kv2_d64", {"head_dim": 64}),
    FULL: ("gqa_ragged_prefill_h4_kv4_d80", {"num_qo_heads": 4, "num_kv_heads": 4}),
}
MUTANTS = [
    (C128, "scale 2 % too large", "* sm_scale", "* (1.02 * sm_scale)"),
    (C128, "scale left out", " * sm_scale", ""),
    (C128, "natural logarithm", " / math.log(2)", ""),
    (C128, "mask aligned at the start", "tril(diagonal=num_kv - num_q)", "tril()"),
    (C128, "mask one key late", "tril(diagonal=num_kv - num_q)", "tril(diagonal=num_kv - num_q + 1)"),
    (C128, "mask one key early", "tril(diagonal=num_kv - num_q)", "tril(diagonal=num_kv - num_q - 1)"),
    (C128, "mask the wrong way round", "masked_fill(~seen, -math.inf)", "masked_fill(seen, -math.inf)"),
    (C128, "no mask", "logits = logits.masked_fill(~seen, -math.inf)", "pass"),
    (C128, "mask of zeros, not of -inf", "masked_fill(~seen, -math.inf)", "masked_fill(~seen, 0)"),
    (C128, "masked after the softmax", WEIGHTS, "weights = torch.softmax(logits.nan_to_num(neginf=0.0), dim=-1) * seen"),
    (C128, "kv heads tiled, not interleaved", QUERIES, "queries = q[rows].float().view(num_q, num_qo_heads // num_kv_heads, num_kv_heads, head_dim).transpose(1, 2)"),
    (C128, "keys from the offsets of the queries", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())"),
    (C128, "keys of all sequences before, too", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(0, kv_indptr[i + 1].item())"),
    (C128, "last sequence left out", "range(len(qo_indptr) - 1)", "range(max(1, len(qo_indptr) - 2))"),
    (C128, "keys for values", "v[keys].float()", "k[keys].float()"),
    (C256, "output 2 % too large", ".flatten(1, 2).to(q.dtype)", ".flatten(1, 2).mul(1.02).to(q.dtype)"),
    (C256, "scale of half the head", "* sm_scale", "* (sm_scale * math.sqrt(2))"),
    (C256, "half of the head left out", 'torch.einsum("qhgd,nhd->hgqn", queries, k[keys].float())', 'torch.einsum("qhgd,nhd->hgqn", queries[..., :128], k[keys, :, :128].float())'),
    (C256, "softmax without subtracting the maximum", WEIGHTS, "weights = logits.exp() / logits.exp().sum(dim=-1, keepdim=True)"),
    (C256, "weights not normalised", WEIGHTS, "weights = (logits - logits.amax(dim=-1, keepdim=True)).exp()"),
    (C256, "queries rounded to fp8", "q[rows].float()", f"q[rows].float(){FP8}"),
    (C256, "values rounded to fp8", "v[keys].float()", f"v[keys].float(){FP8}"),
    (C256, "log-sum-exp transposed", ".permute(2, 0, 1).flatten(1)", ".permute(2, 1, 0).flatten(1)"),
    (C256, "log-sum-exp before the mask", "logits = logits.masked_fill(~seen, -math.inf)\n        lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)", "lse[rows] = torch.logsumexp(logits, dim=-1).permute(2, 0, 1).flatten(1) / math.log(2)\n        logits = logits.masked_fill(~seen, -math.inf)"),
    (C256, "empty sequences have log-sum-exp 0", "torch.full(q.shape[:2], -math.inf,", "torch.full(q.shape[:2], 0.0,"),
    (FULL, "causal mask where none belongs", "weights = torch.softmax(logits, dim=-1)", "weights = torch.softmax(logits + torch.full((logits.shape[0], 1, logits.shape[2]), -math.inf, device=q.device).triu(1 + logits.shape[2] - logits.shape[0]), dim=-1)"),
    (FULL, "natural logarithm", " / math.log(2)", ""),
    (FULL, "softmax over the queries", "torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=0)"),
    (FULL, "returns zeros", RETURN, "return output * 0, lse"),
    (FULL, "returns NaN in one place", RETURN, "output[-1, -1, -1] = math.nan\n    " + RETURN),
    (FULL, "returns float32", RETURN, "return output.float(), lse"),
    (FULL, "returns only the output", RETURN, "return output"),
    (FULL, "returns bfloat16 log-sum-exp", RETURN, "return output, lse.bfloat16()"),
    (FULL, "overwrites its input", RETURN, "q.zero_()\n    " + RETURN),
    (FULL, "is not deterministic, within bounds", RETURN, "torch.seed()\n    " + RETURN.replace("lse", "lse + 1e-5 * torch.rand((), device=q.device)")),
    (C128, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(head_dim)"),
    (FULL, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(q.shape[-1])"),
    (C128, "sequences after the 128th not looked at", "range(len(qo_indptr) - 1)", "range(min(len(qo_indptr) - 1, 128))"),
    (C256, "sequences after the 300th not looked at", "range(len(qo_indptr) - 1)", "range(min(len(qo_indptr) - 1, 300))"),
    (FULL, "keys after the 1024th not looked at", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), min(kv_indptr[i + 1].item(), kv_indptr[i].item() + 1024))"),
    (C256, "mask one key late for a multiple of 128 queries", "tril(diagonal=num_kv - num_q)", "tril(diagonal=num_kv - num_q + (num_q % 128 == 0))"),
    (C128, "mask one key late for a query after a multiple of 32", "tril(diagonal=num_kv - num_q)", "tril(diagonal=num_kv - num_q + (num_q > 1 and num_q % 32 == 1))"),
    (C256, "probabilities in bfloat16", WEIGHTS, "weights = torch.softmax(logits, dim=-1).bfloat16().float()"),
    (FULL, "output of bfloat16 probabilities and values", 'torch.einsum("qhn,nhd->qhd", weights, wide_v)', 'torch.einsum("qhn,nhd->qhd", weights.bfloat16(), wide_v.bfloat16())'),
    (FULL, "keys after the 2048th not looked at", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), min(kv_indptr[i + 1].item(), kv_indptr[i].item() + 2048))"),
    (C256, "window of 2048 keys", "tril(diagonal=num_kv - num_q)", "tril(diagonal=num_kv - num_q).triu(diagonal=num_kv - num_q - 2047)"),
    (C128, "a scale of 1 taken for none", "* sm_scale", "* (128 ** -0.5 if sm_scale == 1 else sm_scale)"),
    (FULL, "a scale of 1 taken for none", "* sm_scale", "* (80 ** -0.5 if sm_scale == 1 else sm_scale)"),
    (C128, "queries of a sequence after the 1024th not looked at", RETURN, "for i in range(len(qo_indptr) - 1):\n        output[qo_indptr[i] + 1024 : qo_indptr[i + 1]] = 0\n    " + RETURN),
    (C256, "queries after the 2048th not written", RETURN, "output[2048:] = 0\n    " + RETURN),
    (FULL, "queries of a sequence after the 2048th not looked at", RETURN, "for i in range(len(qo_indptr) - 1):\n        output[qo_indptr[i] + 2048 : qo_indptr[i + 1]] = 0\n    " + RETURN),
    ("gqa_ragged_prefill_h16_kv16_d80", "a maximum that starts at -10000", "torch.softmax(logits, dim=-1)",
     "(lambda e: e / e.sum(dim=-1, keepdim=True))(torch.exp(logits - logits.amax(dim=-1, keepdim=True).clamp(min=-1e4)))"),
    # The next mistakes limit the number of keys to that of the first sequence.
    (FULL, "only as many keys as the first sequence has", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())" + "\n        keys = slice(keys.start, min(keys.stop, keys.start + kv_indptr[1].item()))"),
    # The next mistakes are found because the inputs have large keys and values where a sequence has only one key.
    (FULL, "keys limited to 100", "k[keys].float()", "k[keys].float().clamp(-100, 100)"),
    (FULL, "values limited to 100", "v[keys].float()", "v[keys].float().clamp(-100, 100)"),
    (FULL, "values by way of float16", "v[keys].float()", "v[keys].half().float()"),
    (FULL, "values limited to 65504", "v[keys].float()", "v[keys].float().clamp(-65504, 65504)"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "scale left out": "the scale was left out",
    "natural logarithm": "lse was a natural logarithm, not of base 2",
    "mask aligned at the start": "the causal mask was aligned at the first key, not at the last",
    "mask one key late": "the causal mask was shifted by one",
    "mask one key early": "the causal mask was shifted by one",
    "kv heads tiled, not interleaved": r"query heads were grouped as \[heads of a group, kv heads\], not as \[kv heads, heads of a group\]",
    "keys for values": "keys were used for values",
    "output 2 % too large": r"(was|were) multiplied by 1\.02",
    "weights not normalised": "the exponentials were not divided by their sum",
    "queries rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "values rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "empty sequences have log-sum-exp 0": "lse of a query without keys was 0, not -infinity",
    "returns zeros": "(was|were) 0",
    "the scale that models have, whatever is asked for": r"the scale was 1 / sqrt\(head dim\), not the given one",
    "probabilities in bfloat16": "probabilities were rounded to bfloat16",
    "output of bfloat16 probabilities and values": "probabilities were rounded to bfloat16",
    "a scale of 1 taken for none": "a scale of 1 was ignored",
    "returns NaN in one place": "is NaN only where total_q = 15",
    "softmax without subtracting the maximum": "the largest logit was not subtracted before the exponentials, which overflow",
    "values limited to 100": "'output' was clamped to magnitudes of at most 100$",
    "values by way of float16": "'output' was rounded to float16",
    "keys limited to 100": "'k' was clamped to magnitudes of at most 100$",
    "values limited to 65504": "'output' was clamped to magnitudes of at most 65536$",
}
