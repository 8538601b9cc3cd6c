"""gqa_paged - mistakes that people make in references of attention over a paged cache."""

D16 = "gqa_paged_decode_h40_kv8_d128_ps16"
D1 = "gqa_paged_decode_h28_kv4_d128_ps1"
P16 = "gqa_paged_prefill_causal_h16_kv4_d128_ps16"
FULL = "gqa_paged_prefill_h20_kv20_d64_ps1"
LENGTH = "length = (end - first - 1) * page_size + kv_last_page_len[i].item()"
PLACES = "torch.arange(stop - begin, device=q.device) + length - (stop - begin)"
SEEN = "torch.arange(length, device=q.device) <= places[rows.start - begin : rows.stop - begin, None]"
RETURN = "return output, lse"
FP8 = ".to(torch.float8_e4m3fn).float()"

MUTANTS = [
    (D16, "scale 2 % too large", "* sm_scale", "* (1.02 * sm_scale)"),
    (D16, "scale ignored", "* sm_scale", "/ math.sqrt(2 * head_dim)"),
    (D16, "natural logarithm", " / math.log(2)", ""),
    (D16, "log-sum-exp of unscaled logits", "torch.logsumexp(logits, dim=-1)", "torch.logsumexp(logits / sm_scale, dim=-1)"),
    (D16, "kv heads tiled, not interleaved", "queries = q[i].float().view(num_kv_heads, -1, head_dim)", "queries = q[i].float().view(-1, num_kv_heads, head_dim).transpose(0, 1)"),
    (D16, "page table ignored", "kv_indices[first:end].long()", "torch.arange(first, end, device=q.device)"),
    (D16, "every page table read from its start", "kv_indices[first:end].long()", "kv_indices[: end - first].long()"),
    (D16, "pages in reverse", "kv_indices[first:end].long()", "kv_indices[first:end].long().flip(0)"),
    (D16, "last page taken as full", LENGTH, "length = (end - first) * page_size"),
    (D16, "last page one key short", LENGTH, LENGTH + " - 1"),
    (D16, "last page left out", LENGTH, "length = max(1, (end - first - 1) * page_size)"),
    (D16, "lengths of the next sequence", "kv_last_page_len[i]", "kv_last_page_len[i - 1]"),
    (D16, "keys for values", "values = v_cache", "values = k_cache"),
    (D16, "output 2 % too large", "num_qo_heads, head_dim).to(q.dtype)", "num_qo_heads, head_dim).mul(1.02).to(q.dtype)"),
    (D16, "queries rounded to fp8", "q[i].float()", f"q[i].float(){FP8}"),
    (D16, "keys rounded to fp8", "keys = k_cache[pages].flatten(0, 1)[:length].float()", f"keys = k_cache[pages].flatten(0, 1)[:length].float(){FP8}"),
    (D16, "log-sum-exp of an empty sequence is 0", "-math.inf", "0.0"),
    (D1, "softmax without subtracting the maximum", "weights = torch.softmax(logits, dim=-1)", "weights = logits.exp() / logits.exp().sum(dim=-1, keepdim=True)"),
    (D1, "softmax over the heads", "weights = torch.softmax(logits, dim=-1)", "weights = torch.softmax(logits, dim=0)"),
    (D1, "softmax left out", "weights = torch.softmax(logits, dim=-1)", "weights = logits"),
    (D1, "base-2 softmax", "weights = torch.softmax(logits, dim=-1)", "weights = torch.softmax(logits * math.log(2), dim=-1)"),
    (D1, "last key left out", "slots = kv_indices[first:end].long()", "slots = kv_indices[first : max(end - 1, first + 1)].long()"),
    (D1, "first key left out", "slots = kv_indices[first:end].long()", "slots = kv_indices[min(first + 1, end - 1) : end].long()"),
    (D1, "logits rounded to bfloat16", "logits = (keys @ q[i].float().unsqueeze(-1)).squeeze(-1) * sm_scale", "logits = ((keys @ q[i].float().unsqueeze(-1)).squeeze(-1) * sm_scale).bfloat16().float()"),
    (D1, "last sequence not written", "in enumerate(zip(bounds[:-1], bounds[1:]))", "in enumerate(zip(bounds[:-2], bounds[1:-1]))"),
    (D1, "returns float32", "output = torch.zeros_like(q)", "output = torch.zeros_like(q, dtype=torch.float32)"),
    (D1, "returns zeros", RETURN, "return output * 0, lse"),
    (D1, "returns NaN in one place", RETURN, "output[-1, -1, -1] = math.nan\n    " + RETURN),
    (D1, "outputs exchanged", RETURN, "return lse, output"),
    (D1, "log-sum-exp without its last head", "lse[i] = torch.logsumexp(logits, dim=-1) / math.log(2)", "lse[i, :-1] = torch.logsumexp(logits, dim=-1)[:-1] / math.log(2)"),
    (D1, "overwrites the cache", RETURN, "k_cache[0] = 0\n    " + RETURN),
    (D1, "is not deterministic, within bounds", RETURN, "torch.seed()\n    " + RETURN.replace("lse", "lse + 1e-5 * torch.rand((), device=q.device)")),
    (P16, "no mask", SEEN, "torch.ones(rows.stop - rows.start, length, dtype=torch.bool, device=q.device)"),
    (P16, "mask aligned at the start", PLACES, "torch.arange(stop - begin, device=q.device)"),
    (P16, "mask one key late", PLACES, PLACES + " + 1"),
    (P16, "mask one key early", "<= places[", "< places["),
    (P16, "chunks masked as though each were the first", "places[rows.start - begin : rows.stop - begin, None]", "places[: rows.stop - rows.start, None]"),
    (P16, "mask by whole pages", PLACES, f"({PLACES}) // page_size * page_size + page_size - 1"),
    (P16, "second chunk left out", "for start in range(begin, stop, CHUNK):", "for start in range(begin, min(stop, begin + CHUNK), CHUNK):"),
    (P16, "lengths from the offsets of the queries", "first, end = kv_indptr[i].item(), kv_indptr[i + 1].item()", "first, end = qo_indptr[i].item(), qo_indptr[i + 1].item()"),
    (P16, "last page taken as full", LENGTH, "length = (end - first) * page_size"),
    (P16, "kv heads tiled, not interleaved", "queries = q[rows].float().view(-1, num_kv_heads, num_qo_heads // num_kv_heads, head_dim)", "queries = q[rows].float().view(-1, num_qo_heads // num_kv_heads, num_kv_heads, head_dim).transpose(1, 2)"),
    (FULL, "causal mask where none belongs", "lse[rows] =", "logits = logits + torch.full((logits.shape[0], 1, logits.shape[2]), -math.inf, device=q.device).triu(1 + logits.shape[2] - logits.shape[0])\n        lse[rows] ="),
    (FULL, "scale 2 % too small", "* sm_scale", "* (0.98 * sm_scale)"),
    (FULL, "values of the next key", "values = v_cache[slots, 0]", "values = v_cache[slots.roll(-1), 0]"),
    (D16, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(head_dim)"),
    (P16, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(head_dim)"),
    (D16, "sequences after the 300th not looked at", "for i in range(batch_size):", "for i in range(min(batch_size, 300)):"),
    (P16, "sequences after the 128th not looked at", "for i in range(len(qo_indptr) - 1):", "for i in range(min(len(qo_indptr) - 1, 128)):"),
    (FULL, "sequences after the 32nd not looked at", "for i in range(len(qo_indptr) - 1):", "for i in range(min(len(qo_indptr) - 1, 32)):"),
    (D1, "keys after the 1024th not looked at", "slots = kv_indices[first:end].long()", "slots = kv_indices[first : min(end, first + 1024)].long()"),
    (D16, "last key left out of a multiple of 128", LENGTH, LENGTH + "\n        length -= length % 128 == 0"),
    (D16, "key after a multiple of 64 left out", LENGTH, LENGTH + "\n        length -= length > 1 and length % 64 == 1"),
    (P16, "last block left out of a multiple of 64 queries", "for start in range(begin, stop, CHUNK):", "for start in range(begin, stop - (64 if (stop - begin) % 64 == 0 else 0), CHUNK):"),
    (D1, "largest logit not below 0", "weights = torch.softmax(logits, dim=-1)", "weights = (logits - logits.amax(dim=-1, keepdim=True).clamp(min=0)).exp()\n            weights = weights / weights.sum(dim=-1, keepdim=True)"),
    (D1, "probabilities in bfloat16", "(weights.unsqueeze(1) @ values)", "(weights.bfloat16().float().unsqueeze(1) @ values)"),
    (P16, "probabilities and values in bfloat16", 'torch.einsum("qhgn,nhd->qhgd", weights, values)', 'torch.einsum("qhgn,nhd->qhgd", weights.bfloat16(), values.bfloat16()).float()'),
    (D1, "keys after the 2048th not looked at", "slots = kv_indices[first:end].long()", "slots = kv_indices[first : min(end, first + 2048)].long()"),
    (FULL, "keys after the 1500th not looked at", "kv_indices[kv_indptr[i].item() : kv_indptr[i + 1].item()]", "kv_indices[kv_indptr[i].item() : min(kv_indptr[i + 1].item(), kv_indptr[i].item() + 1500)]"),
    (D16, "page numbers in 8 bits", "kv_indices[first:end].long()", "kv_indices[first:end].to(torch.uint8).long()"),
]
