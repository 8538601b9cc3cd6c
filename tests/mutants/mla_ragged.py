"""mla_ragged - mistakes that people make in references of latent attention without absorbed weights."""

CAUSAL = "mla_ragged_prefill_causal_h8_qk192_vo128"
FULL = "mla_ragged_prefill_h16_qk192_vo128"
PLACES = "torch.arange(num_q, device=q.device) + num_kv - num_q"
WEIGHTS = "weights = torch.softmax(logits, dim=-1)"
RETURN = "return output, lse"

SMALLER = {
    CAUSAL: ("mla_ragged_prefill_causal_h2_qk192_vo128", {"num_qo_heads": 2, "num_kv_heads": 2}),
    FULL: ("mla_ragged_prefill_h4_qk192_vo128", {"num_qo_heads": 4, "num_kv_heads": 4}),
}
MUTANTS = [
    (CAUSAL, "scale 2 % too large", "* sm_scale", "* (1.02 * sm_scale)"),
    (CAUSAL, "scale of the part without rotation", "* sm_scale", "/ math.sqrt(128)"),
    (CAUSAL, "rotary part left out", 'torch.einsum("qhd,nhd->hqn", q[rows].float(), k[keys].float())', 'torch.einsum("qhd,nhd->hqn", q[rows, :, :128].float(), k[keys, :, :128].float())'),
    (CAUSAL, "natural logarithm", " / math.log(2)", ""),
    (CAUSAL, "mask aligned at the start", PLACES, "torch.arange(num_q, device=q.device)"),
    (CAUSAL, "mask one key late", PLACES, PLACES + " + 1"),
    (CAUSAL, "mask one key early", "> places[:, None]", ">= places[:, None]"),
    (CAUSAL, "no mask", "logits = logits.masked_fill(unseen, -math.inf)", "pass"),
    (CAUSAL, "keys for values", "v[keys].float()", "k[keys, :, :128].float()"),
    (CAUSAL, "keys from the offsets of the queries", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(qo_indptr[i].item(), qo_indptr[i + 1].item())"),
    (CAUSAL, "softmax without subtracting the maximum", WEIGHTS, "weights = logits.exp() / logits.exp().sum(dim=-1, keepdim=True)"),
    (CAUSAL, "heads of the keys in reverse", "k[keys].float()", "k[keys].flip(1).float()"),
    (CAUSAL, "output 2 % too small", ".to(q.dtype)", ".mul(0.98).to(q.dtype)"),
    (CAUSAL, "keys rounded to fp8", "k[keys].float()", "k[keys].to(torch.float8_e4m3fn).float()"),
    (CAUSAL, "returns the shape of the query", "v.shape[-1], dtype=q.dtype", "q.shape[-1], dtype=q.dtype"),
    (FULL, "scale 2 % too small", "* sm_scale", "* (0.98 * sm_scale)"),
    (FULL, "causal mask where none belongs", WEIGHTS, "weights = torch.softmax(logits + torch.full(logits.shape[1:], -math.inf, device=q.device).triu(1 + logits.shape[2] - logits.shape[1]), dim=-1)"),
    (FULL, "last key left out", "v[keys].float().transpose(0, 1)", "torch.cat([v[keys][:-1], v[keys][-1:] * 0]).float().transpose(0, 1)"),
    (FULL, "log-sum-exp of the weights", "lse[rows] = torch.logsumexp(logits, dim=-1).T", "lse[rows] = torch.logsumexp(torch.softmax(logits, dim=-1), dim=-1).T"),
    (FULL, "largest logit for the log-sum-exp", "torch.logsumexp(logits, dim=-1).T", "logits.amax(dim=-1).T"),
    (FULL, "sequences of no keys left NaN", "if rows.start == rows.stop or keys.start == keys.stop:\n            continue", "if keys.start == keys.stop:\n            output[rows] = math.nan\n        if rows.start == rows.stop or keys.start == keys.stop:\n            continue"),
    (FULL, "returns zeros", RETURN, "return output * 0, lse"),
    (FULL, "returns NaN in one place", RETURN, "output[-1, -1, -1] = math.nan\n    " + RETURN),
    (FULL, "returns float32", RETURN, "return output.float(), lse"),
    (FULL, "overwrites its input", RETURN, "v.zero_()\n    " + RETURN),
    (FULL, "is not deterministic, within bounds", RETURN, "torch.seed()\n    " + RETURN.replace("lse", "lse + 1e-5 * torch.rand((), device=q.device)")),
    (CAUSAL, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(192)"),
    (FULL, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(192)"),
    (CAUSAL, "sequences after the 64th not looked at", "for i in range(len(qo_indptr) - 1):", "for i in range(min(len(qo_indptr) - 1, 64)):"),
    (FULL, "keys after the 1024th not looked at", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), min(kv_indptr[i + 1].item(), kv_indptr[i].item() + 1024))"),
    (CAUSAL, "mask one key late for a multiple of 256 queries", PLACES, PLACES + " + (num_q % 256 == 0)"),
    (CAUSAL, "probabilities in bfloat16", WEIGHTS, "weights = torch.softmax(logits, dim=-1).bfloat16().float()"),
    (FULL, "keys after the 2048th not looked at", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), min(kv_indptr[i + 1].item(), kv_indptr[i].item() + 2048))"),
    (CAUSAL, "a scale of 1 taken for none", "* sm_scale", "* (192 ** -0.5 if sm_scale == 1 else sm_scale)"),
    (FULL, "a scale of 1 taken for none", "* sm_scale", "* (192 ** -0.5 if sm_scale == 1 else sm_scale)"),
    (CAUSAL, "queries of a sequence after the 1024th not looked at", RETURN, "for i in range(len(qo_indptr) - 1):\n        output[qo_indptr[i] + 1024 : qo_indptr[i + 1]] = 0\n    " + RETURN),
    (CAUSAL, "queries after the 2048th not written", RETURN, "output[2048:] = 0\n    " + RETURN),
    (FULL, "queries of a sequence after the 2048th not looked at", RETURN, "for i in range(len(qo_indptr) - 1):\n        output[qo_indptr[i] + 2048 : qo_indptr[i + 1]] = 0\n    " + RETURN),
    ("mla_ragged_prefill_h16_qk192_vo128", "a maximum that starts at -10000", "torch.softmax(logits, dim=-1)",
     "(lambda e: e / e.sum(dim=-1, keepdim=True))(torch.exp(logits - logits.amax(dim=-1, keepdim=True).clamp(min=-1e4)))"),
    (FULL, "only as many keys as the first sequence has", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())", "keys = slice(kv_indptr[i].item(), kv_indptr[i + 1].item())" + "\n        keys = slice(keys.start, min(keys.stop, keys.start + kv_indptr[1].item()))"),
    # The next mistakes are found because the inputs have large keys and values where a sequence has only one key.
    (FULL, "keys limited to 100", "k[keys].float()", "k[keys].float().clamp(-100, 100)"),
    (FULL, "values limited to 448", "v[keys].float()", "v[keys].float().clamp(-448, 448)"),
    (CAUSAL, "values by way of float16", "v[keys].float()", "v[keys].half().float()"),
    (CAUSAL, "no mask for more than 64 queries in the last sequence", "        logits = logits.masked_fill",
     "        if i == len(qo_indptr) - 2 and num_q > 64:\n            unseen = unseen & False\n        logits = logits.masked_fill"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "natural logarithm": "lse was a natural logarithm, not of base 2",
    "mask aligned at the start": "the causal mask was aligned at the first key, not at the last",
    "mask one key late": "the causal mask was shifted by one",
    "mask one key early": "the causal mask was shifted by one",
    "heads of the keys in reverse": "(was|were) read in reverse order along axis 1",
    "output 2 % too small": r"(was|were) multiplied by 0\.98",
    "keys rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "returns zeros": "(was|were) 0",
    "the scale that models have, whatever is asked for": r"the scale was 1 / sqrt\(head dim\), not the given one",
    "probabilities in bfloat16": "probabilities were rounded to bfloat16",
    "a scale of 1 taken for none": "a scale of 1 was ignored",
    "returns NaN in one place": "is NaN only where total_q = 15",
    "sequences of no keys left NaN": "is NaN only where total_q >= 14",
    "softmax without subtracting the maximum": "the largest logit was not subtracted before the exponentials, which overflow",
    "largest logit for the log-sum-exp": "lse was the largest logit, not the logarithm of the sum",
    "rotary part left out": r"the rotary part \(the end of q and k, which are longer than v\) was left out",
    "keys for values": r"the beginning of keys \(without their rotary part\) was used for values",
    "values limited to 448": "'output' was clamped to magnitudes of at most 448$",
    "values by way of float16": "'output' was rounded to float16",
    "keys limited to 100": "'k' was clamped to magnitudes of at most 100$",
}
