"""Mistakes people make in references of sparse attention and of the indexer that chooses its keys."""

SPARSE = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64"
SPARSE1 = "dsa_sparse_attention_h32_ckv512_kpe64_topk2048_ps1"
INDEXER = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
VALID = "slots = slots[slots >= 0].long()"
SCORES = "scores = weights[i] @ torch.relu(q_index_fp8[i].float() @ keys.T)"
BEST = "best = torch.topk(scores, min(chosen, length)).indices"
NAMES = "(pages[best // page_size] * page_size + best % page_size).int()"
RETURN = "return output, lse"

MUTANTS = [
    (SPARSE, "scale 2 % too large", "* sm_scale", "* (1.02 * sm_scale)"),
    (SPARSE, "scale of the latent", "* sm_scale", "/ math.sqrt(576)"),
    (SPARSE, "natural logarithm", " / math.log(2)", ""),
    (SPARSE, "rotary part left out", " + q_pe[t].float() @ rotary[slots].float().T", ""),
    (SPARSE, "padding taken for the last row", VALID, "slots = slots.long()"),
    (SPARSE, "padding taken for row 0", VALID, "slots = slots.clamp(min=0).long()"),
    (SPARSE, "padding ends the list", VALID, "slots = slots[(slots < 0).cumsum(0) == 0].long()"),
    (SPARSE, "row 0 taken for padding", "slots >= 0", "slots > 0"),
    (SPARSE, "last key left out", VALID, VALID + "[:-1]"),
    (SPARSE, "causal order of rows", VALID, VALID + "\n        slots = slots[slots <= t * 64]"),
    (SPARSE, "rows taken for pages", "keys = latents[slots].float()", "keys = ckv_cache[slots % ckv_cache.shape[0], 0].float()"),
    (SPARSE, "half of the list read", "slots = sparse_indices[t]", "slots = sparse_indices[t, : sparse_indices.shape[1] // 2]"),
    (SPARSE1, "list of the first query", "slots = sparse_indices[t]", "slots = sparse_indices[0]"),
    (SPARSE1, "output 2 % too large", "@ keys).to(q_nope.dtype)", "@ keys).mul(1.02).to(q_nope.dtype)"),
    (SPARSE1, "softmax without subtracting the maximum", "torch.softmax(logits, dim=-1)", "(logits.exp() / logits.exp().sum(dim=-1, keepdim=True))"),
    (SPARSE1, "queries without keys have log-sum-exp 0", "-math.inf", "0.0"),
    (SPARSE1, "latents rounded to fp8", "keys = latents[slots].float()", "keys = latents[slots].to(torch.float8_e4m3fn).float()"),
    (SPARSE1, "returns zeros", RETURN, "return output * 0, lse"),
    (SPARSE1, "returns NaN in one place", RETURN, "output[-1, -1, -1] = math.nan\n    " + RETURN),
    (SPARSE1, "returns float16", RETURN, "return output.half(), lse"),
    (SPARSE1, "overwrites the list", RETURN, "sparse_indices.clamp_(min=0)\n    " + RETURN),
    (SPARSE1, "is not deterministic, within bounds", RETURN, "torch.seed()\n    " + RETURN.replace("lse", "lse + 1e-5 * torch.rand((), device=lse.device)")),
    (INDEXER, "relu left out", "torch.relu(q_index_fp8[i].float() @ keys.T)", "(q_index_fp8[i].float() @ keys.T)"),
    (INDEXER, "relu after the sum", SCORES, "scores = torch.relu(weights[i] @ (q_index_fp8[i].float() @ keys.T))"),
    (INDEXER, "weights left out", SCORES, "scores = torch.relu(q_index_fp8[i].float() @ keys.T).sum(dim=0)"),
    (INDEXER, "weights of the first sequence", "weights[i]", "weights[0]"),
    (INDEXER, "softmax of the weights", "weights[i]", "torch.softmax(weights[i], dim=-1)"),
    (INDEXER, "key scales left out", " * scales.unsqueeze(-1)", " + 0 * scales.unsqueeze(-1)"),
    (INDEXER, "key scales divided by", " * scales.unsqueeze(-1)", " / scales.unsqueeze(-1)"),
    (INDEXER, "scale after each key", "keys = pages[:, : page_size * head_dim].contiguous()", "keys = pages.view(len(pages), page_size, -1)[..., :head_dim].contiguous()"),
    (INDEXER, "octets taken for integers", ".view(torch.float8_e4m3fn)", ".view(torch.int8)"),
    (INDEXER, "smallest scores", BEST, "best = torch.topk(-scores, min(chosen, length)).indices"),
    (INDEXER, "largest magnitudes", BEST, "best = torch.topk(scores.abs(), min(chosen, length)).indices"),
    (INDEXER, "the first keys", BEST, "best = torch.arange(min(chosen, length), device=scores.device)"),
    (INDEXER, "the last keys", BEST, "best = torch.arange(max(0, length - chosen), length, device=scores.device)"),
    (INDEXER, "one key too few", "min(chosen, length)", "min(chosen - 1, length)"),
    (INDEXER, "places, not rows of the cache", NAMES, "best.int()"),
    (INDEXER, "page numbers alone", NAMES, "pages[best // page_size].int()"),
    (INDEXER, "page table ignored", "block_table[i, : -(-length // page_size)].long()", "torch.arange(-(-length // page_size), device=weights.device)"),
    (INDEXER, "length rounded up to pages", "[:length]\n", "\n"),
    (INDEXER, "0 where nothing is chosen", "-1, dtype=torch.int32", "0, dtype=torch.int32"),
    (INDEXER, "sequence without keys names one", "if length == 0:\n            continue", "if length == 0:\n            output[i, 0] = 0\n            continue"),
    (INDEXER, "first choice named twice", "return (output,)", "output[:, 1] = output[:, 0]\n    return (output,)"),
    (INDEXER, "returns int64", "return (output,)", "return (output.long(),)"),
    (INDEXER, "overwrites the lengths", "return (output,)", "seq_lens.add_(1)\n    return (output,)"),
    (INDEXER, "is not deterministic, as a set right", "return (output,)", "torch.seed()\n    return (output[:, torch.randperm(chosen, device=output.device)],)"),
    (SPARSE, "the scale that models have, whatever is asked for", "* sm_scale", "/ math.sqrt(192)"),
    (SPARSE1, "queries after the 300th not looked at", "for t in range(q_nope.shape[0]):", "for t in range(min(q_nope.shape[0], 300)):"),
    (SPARSE, "last key left out of a multiple of 32", VALID, VALID + "\n        slots = slots[: len(slots) - (0 < len(slots) < 1024 and len(slots) % 32 == 0)]"),
    (SPARSE1, "probabilities in bfloat16", "torch.softmax(logits, dim=-1)", "torch.softmax(logits, dim=-1).bfloat16().float()"),
    (INDEXER, "sequences after the 300th not looked at", "in enumerate(seq_lens.tolist())", "in enumerate(seq_lens.tolist()[:300])"),
    (INDEXER, "all keys that reach the least chosen score", BEST, "best = (scores >= torch.topk(scores, min(chosen, length)).values[-1]).nonzero().flatten()"),
    (INDEXER, "scores below 0 counted as 0", SCORES, "scores = torch.relu(weights[i] @ torch.relu(q_index_fp8[i].float() @ keys.T))"),
    (INDEXER, "places after the last key have score 0", BEST, "best = torch.topk(torch.cat([scores, scores.new_zeros(-length % page_size)]), min(chosen, length)).indices"),
    (INDEXER, "last key left out of a multiple of 128", BEST, "best = torch.topk(scores[: length - (length % 128 == 0 and length < chosen)], min(chosen, length - (length % 128 == 0 and length < chosen))).indices"),
]
