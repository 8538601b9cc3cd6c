"""mla_paged - mistakes that people make in references of latent attention over a paged cache."""

DECODE = "mla_paged_decode_h128_ckv512_kpe64_ps64"
PREFILL = "mla_paged_prefill_causal_h32_ckv512_kpe64_ps1"
LENGTH = "length = (end - first - 1) * page_size + kv_last_page_len[i].item()"
LOGITS = "logits = (q_nope[i].float() @ latents.T + q_pe[i].float() @ rotary.T) * sm_scale"
PLACES = "torch.arange(begin - stop, 0, device=keys.device) + len(slots)"
RETURN = "return output, lse"
FP8 = ".to(torch.float8_e4m3fn).float()"

SMALLER = {
    PREFILL: ("mla_paged_prefill_causal_h8_ckv512_kpe64_ps1", {"num_qo_heads": 8}),
    DECODE: ("mla_paged_decode_h32_ckv512_kpe64_ps64", {"num_qo_heads": 32}),
}
MUTANTS = [
    (DECODE, "scale 2 % too large", "* sm_scale", "* (1.02 * sm_scale)"),
    (DECODE, "scale of the latent", "* sm_scale", "/ math.sqrt(576)"),
    (DECODE, "rotary part left out", LOGITS, "logits = (q_nope[i].float() @ latents.T) * sm_scale"),
    (DECODE, "latent part left out", LOGITS, "logits = (q_pe[i].float() @ rotary.T) * sm_scale"),
    (DECODE, "rotary part not scaled", LOGITS, "logits = q_nope[i].float() @ latents.T * sm_scale + q_pe[i].float() @ rotary.T"),
    (DECODE, "natural logarithm", " / math.log(2)", ""),
    (DECODE, "last page taken as full", LENGTH, "length = (end - first) * page_size"),
    (DECODE, "last page one key short", LENGTH, LENGTH + " - 1"),
    (DECODE, "all pages but the last ignored", "[:length].float()\n        rotary", "[-page_size:][:length].float()\n        rotary"),
    (DECODE, "page table ignored", "kv_indices[first:end].long()", "torch.arange(first, end, device=q_nope.device)"),
    (DECODE, "page table read from its start", "kv_indices[first:end].long()", "kv_indices[: end - first].long()"),
    (DECODE, "rotary pages in reverse", "kpe_cache[pages]", "kpe_cache[pages.flip(0)]"),
    (DECODE, "latents rounded to fp8", "ckv_cache[pages].flatten(0, 1)[:length].float()", f"ckv_cache[pages].flatten(0, 1)[:length].float(){FP8}"),
    (DECODE, "softmax without subtracting the maximum", "torch.softmax(logits, dim=-1)", "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True))"),
    (DECODE, "query of the first sequence", "q_nope[i].float()", "q_nope[0].float()"),
    (DECODE, "log-sum-exp of an empty sequence is 0", "-math.inf", "0.0"),
    (DECODE, "returns float32 log-sum-exp as float64", RETURN, "return output, lse.double()"),
    (PREFILL, "scale 2 % too small", "* sm_scale", "* (0.98 * sm_scale)"),
    (PREFILL, "mask aligned at the start", PLACES, "torch.arange(stop - begin, device=keys.device)"),
    (PREFILL, "mask one key late", PLACES, PLACES + " + 1"),
    (PREFILL, "mask one key early", "> places[:, None]", ">= places[:, None]"),
    (PREFILL, "no mask", "logits = logits.masked_fill(unseen[:, None], -math.inf)", "pass"),
    (PREFILL, "rotary part among the values", "latents = keys[:, : ckv_cache.shape[-1]]", "latents = keys[:, -ckv_cache.shape[-1] :]"),
    (PREFILL, "parts of the query exchanged", "torch.cat([q_nope[begin:stop], q_pe[begin:stop]], dim=-1)", "torch.cat([q_pe[begin:stop], q_nope[begin:stop]], dim=-1)"),
    (PREFILL, "output 2 % too large", ".to(q_nope.dtype)", ".mul(1.02).to(q_nope.dtype)"),
    (PREFILL, "page table ignored", "kv_indices[kv_indptr[i].item() : kv_indptr[i + 1].item()].long()", "torch.arange(kv_indptr[i].item(), kv_indptr[i + 1].item(), device=q_nope.device)"),
    (PREFILL, "returns zeros", RETURN, "return output * 0, lse"),
    (PREFILL, "returns NaN", RETURN, "return output * math.nan, lse"),
    (PREFILL, "returns float32", RETURN, "return output.float(), lse"),
    (PREFILL, "overwrites its input", RETURN, "q_pe.zero_()\n    " + RETURN),
    (PREFILL, "is not deterministic, within bounds", RETURN, "torch.seed()\n    " + RETURN.replace("lse", "lse + 1e-5 * torch.rand((), device=lse.device)")),
    (DECODE, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(192)"),
    (PREFILL, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(192)"),
    (DECODE, "sequences after the 128th not looked at", "for i in range(q_nope.shape[0]):", "for i in range(min(q_nope.shape[0], 128)):"),
    (PREFILL, "sequences after the 300th not looked at", "for i in range(len(qo_indptr) - 1):", "for i in range(min(len(qo_indptr) - 1, 300)):"),
    (DECODE, "last key left out of a multiple of 64", LENGTH, LENGTH + "\n        length -= length % 64 == 0"),
    (PREFILL, "mask one key late for a multiple of 32 queries", PLACES, PLACES + " + ((stop - begin) % 32 == 0)"),
    (DECODE, "probabilities in bfloat16", "torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=-1).bfloat16().float()"),
    (PREFILL, "probabilities in bfloat16", "(weights @ latents)", "(weights.bfloat16() @ latents.bfloat16())"),
    (DECODE, "keys after the 2048th not looked at", LENGTH, LENGTH.replace("= ", "= min(2048, ") + ")"),
    (DECODE, "page numbers in 8 bits", "kv_indices[first:end].long()", "kv_indices[first:end].to(torch.uint8).long()"),
    (DECODE, "a scale of 1 taken for none", "* sm_scale", "* (192 ** -0.5 if sm_scale == 1 else sm_scale)"),
    (PREFILL, "a scale of 1 taken for none", "* sm_scale", "* (192 ** -0.5 if sm_scale == 1 else sm_scale)"),
    ("mla_paged_decode_h128_ckv512_kpe64_ps64", "a maximum that starts at -10000", "torch.softmax(logits, dim=-1)",
     "(lambda e: e / e.sum(dim=-1, keepdim=True))(torch.exp(logits - logits.amax(dim=-1, keepdim=True).clamp(min=-1e4)))"),
    (DECODE, "only as many keys as the first sequence has", LENGTH, "lengths = (kv_indptr.diff() - 1) * page_size + kv_last_page_len\n        length = min(lengths[0].clamp(min=1).item(), lengths[i].item())"),
    (DECODE, "log-sum-exp of an empty sequence is finite", "-math.inf", "-1e30"),
    (PREFILL, "log-sum-exp of an empty sequence is finite", "lse = torch.full(q_nope.shape[:2], -math.inf", "lse = torch.full(q_nope.shape[:2], -1e30"),
    # The next mistakes are found because the inputs have large keys where a sequence has only one key.
    (DECODE, "latents limited to 448", "latents = ckv_cache[pages].flatten(0, 1)[:length].float()", "latents = ckv_cache[pages].flatten(0, 1)[:length].float().clamp(-448, 448)"),
    (DECODE, "latents limited to 65504 in the output alone", "torch.softmax(logits, dim=-1) @ latents", "torch.softmax(logits, dim=-1) @ latents.clamp(-65504, 65504)"),
    (DECODE, "rotary part limited to 50", "rotary = kpe_cache[pages].flatten(0, 1)[:length].float()", "rotary = kpe_cache[pages].flatten(0, 1)[:length].float().clamp(-50, 50)"),
    (PREFILL, "keys by way of float16", "queries = torch.cat", "keys = keys.half().float()\n        queries = torch.cat"),
    # Page numbers above 4095.
    (PREFILL, "page numbers in 12 bits", "kv_indptr[i + 1].item()].long()", "kv_indptr[i + 1].item()].long() & 4095"),
    ("mla_paged_prefill_causal_h32_ckv512_kpe64_ps1", "keys beyond 4096 left out", "kv_indptr[i + 1].item()].long()",
     "kv_indptr[i + 1].item()].long()[:4096]"),
    ("mla_paged_decode_h128_ckv512_kpe64_ps64", "keys beyond 4096 left out",
     "kv_last_page_len[i].item()", "kv_last_page_len[i].item()\n        length = min(length, 4096)"),
    ("mla_paged_prefill_causal_h32_ckv512_kpe64_ps1", "page numbers of 16 bits", "kv_indptr[i + 1].item()].long()",
     "kv_indptr[i + 1].item()].to(torch.int16).long()"),
    (DECODE, "one of 512 keys left out", LENGTH, LENGTH + "\n        length -= int(length == 512)"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "log-sum-exp of an empty sequence is finite": r"'lse' was clamped to magnitudes of at most 1e\+30",
    "scale of the latent": r"the scale was 1 / sqrt\(latent dim \+ rotary dim\), not the given one",
    "rotary part left out": r"the rotary part \(q_pe, k_pe\) was left out",
    "latent part left out": r"(was|were) left out \(taken as 0\)",
    "natural logarithm": "lse was a natural logarithm, not of base 2",
    "page table read from its start": "every sequence read the page table from the start of the table",
    "latents rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "softmax without subtracting the maximum": "the largest logit was not subtracted before the exponentials, which overflow",
    "query of the first sequence": "along axis 0 was replaced by the first slice",
    "log-sum-exp of an empty sequence is 0": "lse of a query without keys was 0, not -infinity",
    "mask aligned at the start": "the causal mask was aligned at the first key, not at the last",
    "mask one key late": "the causal mask was shifted by one: a query sees one key too many",
    "mask one key early": "the causal mask was shifted by one: a query does not see its own key",
    "output 2 % too large": r"(was|were) multiplied by 1\.02",
    "returns zeros": "(was|were) 0",
    "the scale that models have, whatever is asked for": r"the scale was 1 / sqrt\(192\), that of heads of 128 with a rotary part of 64, not the given one",
    "probabilities in bfloat16": "probabilities were rounded to bfloat16",
    "a scale of 1 taken for none": "a scale of 1 was ignored",
    "last page one key short": "the last page had one key too few",
    "rotary part not scaled": "the products of q_pe and k_pe were not scaled",
    "latents limited to 65504 in the output alone": "'output' was clamped to magnitudes of at most 65536$",
    "latents limited to 448": "'ckv_cache' was clamped to magnitudes of at most 448$",
}
