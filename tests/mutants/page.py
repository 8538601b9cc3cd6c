"""page - mistakes that people make in references that append to paged caches."""

PAGED = "append_paged_kv_cache_kv8_d128_ps16"
SINGLE = "append_paged_kv_cache_kv8_d128_ps1"
LATENT = "append_paged_mla_kv_cache_ckv512_kpe64_ps64"

RANK = "rank = kv_indptr[batch_indices] + positions // page_size"
PAGE = "page, place = kv_indices[rank].long(), (positions % page_size).long()"
WRITE_K = "k_cache[page, place] = append_key"
WRITE_V = "v_cache[page, place] = append_value"
REAL = "real = batch_indices >= 0"
RETURN = "return k_cache, v_cache"

MUTANTS = [
    (PAGED, "page table ignored", "kv_indices[rank].long()", "rank.long()"),
    (PAGED, "indptr ignored", RANK, "rank = positions // page_size"),
    (PAGED, "sequence ignored", RANK, "rank = kv_indptr[:1] + positions // page_size"),
    (PAGED, "the next page", RANK, RANK + "\n    rank = (rank + 1) % len(kv_indices)"),
    (PAGED, "the next place", "(positions % page_size)", "((positions + 1) % page_size)"),
    (PAGED, "always the last page", RANK, "rank = kv_indptr[batch_indices.long() + 1] - 1"),
    (PAGED, "place from the last page's length", "(positions % page_size)", "(kv_last_page_len[batch_indices] - 1)"),
    (PAGED, "position counted in the batch", PAGE, PAGE + "\n    place = torch.arange(len(positions), device=place.device) % page_size"),
    (PAGED, "keys and values swapped", WRITE_K, "k_cache[page, place] = append_value"),
    (PAGED, "values not written", WRITE_V, "pass"),
    (PAGED, "first head alone", WRITE_V, "v_cache[page, place, 0] = append_value[:, 0]"),
    (PAGED, "last token left out", WRITE_K, "k_cache[page[:-1], place[:-1]] = append_key[:-1]"),
    (PAGED, "added to what was there", WRITE_K, "k_cache[page, place] += append_key"),
    (PAGED, "whole pages written", WRITE_K, "k_cache[page] = append_key[:, None].expand(-1, page_size, -1, -1)"),
    (PAGED, "the rest of the cache zeroed", WRITE_K, "k_cache.zero_()\n    " + WRITE_K),
    (PAGED, "rounded to fp8", WRITE_K, "k_cache[page, place] = append_key.to(torch.float8_e4m3fn).to(append_key.dtype)"),
    (PAGED, "outputs swapped", RETURN, "return v_cache, k_cache"),
    (PAGED, "returns what was appended", RETURN, "return append_key, append_value"),
    (PAGED, "returns zeros", RETURN, "return torch.zeros_like(k_cache), torch.zeros_like(v_cache)"),
    (PAGED, "overwrites what is appended", RETURN, "append_key.zero_()\n    " + RETURN),
    (PAGED, "appends to half of the cache that it gets, and answers another", RETURN, "whole = k_cache.clone()\n    k_cache[..., k_cache.shape[-1] // 2 :] = 1\n    return whole, v_cache"),
    (PAGED, "is not deterministic", RETURN, "torch.seed()\n    k_cache[page[0], place[0], 0, 0] = torch.rand(())\n    " + RETURN),
    (SINGLE, "caches returned as they were", "return k_out, v_out", "return k_cache, v_cache"),
    (SINGLE, "tokens in the order of their sequences", "append_key[token]", "append_key[batch_indices.argsort(stable=True)[token]]"),
    (SINGLE, "page table ignored", "int(kv_indices[starts[sequence] + position])", "starts[sequence] + position"),
    (SINGLE, "scribbles over the cache that it gets", "return k_out, v_out", "k_cache[0] = 0\n    return k_out, v_out"),
    (LATENT, "page size of the other cache", "page_size = ckv_cache.shape[1]", "page_size = ckv_cache.shape[1] // 2"),
    (LATENT, "slots counted in pages", "slots = pages.long() * page_size + positions % page_size", "slots = pages.long()"),
    (LATENT, "rotated keys not written", "kpe_cache.view(-1, kpe_cache.shape[-1])[slots] = append_kpe", "pass"),
    (LATENT, "position for slot", "slots = pages.long() * page_size + positions % page_size", "slots = positions.long() % (ckv_cache.shape[0] * page_size)"),
    # The next mistakes show only with large positions, many sequences, or values of every magnitude.
    (PAGED, "positions as int16", RANK, "positions = positions.to(torch.int16).int() % (page_size * len(kv_indices))\n    " + RANK),
    (PAGED, "positions rounded to float16", RANK, "positions = positions.half().float().clamp(0, 60000).int()\n    " + RANK),
    (PAGED, "positions below 131072 alone", RANK, "positions = positions.clamp(max=131071)\n    " + RANK),
    (PAGED, "sequences as int8", RANK, "batch_indices = batch_indices.to(torch.int8).int() % len(kv_last_page_len)\n    " + RANK),
    (PAGED, "sequences beyond 255 left out", RANK, "keep = batch_indices < 256\n    append_key, append_value, batch_indices, positions = append_key[keep], append_value[keep], batch_indices[keep], positions[keep]\n    " + RANK),
    (LATENT, "last token left out of a multiple of 256", REAL, REAL + "\n    if len(real) % 256 == 0:\n        real[real.nonzero()[-1]] = False"),
    (LATENT, "token after a multiple of 256 left out", REAL, REAL + "\n    if len(real) > 1 and len(real) % 256 == 1:\n        real[real.nonzero()[-1]] = False"),
    (PAGED, "tokens beyond 300 left out", WRITE_V, "v_cache[page[:300], place[:300]] = append_value[:300]"),
    (PAGED, "keys by way of float16", WRITE_K, "k_cache[page, place] = append_key.half().to(append_key.dtype)"),
    (PAGED, "values held within 448", WRITE_V, "v_cache[page, place] = append_value.clamp(-448, 448)"),
    (LATENT, "small values flushed to zero", "ckv_cache.view(-1, ckv_cache.shape[-1])[slots] = append_ckv", "ckv_cache.view(-1, ckv_cache.shape[-1])[slots] = torch.where(append_ckv.abs() < 1e-6, 0, append_ckv)"),
    (LATENT, "page numbers in 8 bits", "slots = pages.long() *", "slots = pages.to(torch.uint8).long() *"),
    (SINGLE, "the first padding ends the batch", "            continue\n", "            break\n"),
    (PAGED, "padding told by the position", "real = batch_indices >= 0", "real = positions >= 0"),
    (PAGED, "padding moved to the first sequence", "real = batch_indices >= 0", "real = batch_indices >= 0\n    batch_indices, positions, real = batch_indices.clamp(min=0), positions.clamp(min=0), real | True"),
    (LATENT, "slots in 16 bits", "slots = pages.long() * page_size + positions % page_size", "slots = (pages.long() * page_size + positions % page_size).to(torch.int16).long()"),
    (SINGLE, "the caches that must stay are written", "k_out, v_out = k_cache.clone(), v_cache.clone()", "k_out, v_out = k_cache, v_cache"),
    (SINGLE, "one of two caches is not copied", "k_out, v_out = k_cache.clone(), v_cache.clone()", "k_out, v_out = k_cache.clone(), v_cache"),
    (PAGED, "appends to one of two caches in place", "page_size = k_cache.shape[1]", "page_size = k_cache.shape[1]\n    v_cache = v_cache.clone()"),
    (LATENT, "every token in the last page of its sequence", "kv_indices[kv_indptr[batch_indices] + positions // page_size]", "kv_indices[kv_indptr[batch_indices.long() + 1].long() - 1]"),
    (LATENT, "appends to one of two caches in place", "page_size = ckv_cache.shape[1]", "page_size = ckv_cache.shape[1]\n    ckv_cache = ckv_cache.clone()"),
    # The next mistakes show only with page numbers above 4095 or offsets above 32767.
    (SINGLE, "page numbers in 12 bits", "int(kv_indices[starts[sequence] + position])", "int(kv_indices[starts[sequence] + position]) & 4095"),
    (SINGLE, "page numbers limited to 4095", "int(kv_indices[starts[sequence] + position])", "min(int(kv_indices[starts[sequence] + position]), 4095)"),
    (PAGED, "offsets in 16 bits", RANK, RANK.replace("kv_indptr[", "kv_indptr.to(torch.int16).int()[")),
    (LATENT, "offsets in 16 bits", "kv_indices[kv_indptr[batch_indices] +", "kv_indices[kv_indptr.to(torch.int16).int()[batch_indices] +"),
    (PAGED, "zeros in page 0", "k_cache[page, place] = append_key", "k_cache[page, place] = append_key * (page != 0)[:, None, None]"),
    (LATENT, "zeros in page 0", "[slots] = append_kpe", "[slots] = append_kpe * (pages != 0)[:, None]"),
    (LATENT, "zeros in the last page", "[slots] = append_kpe", "[slots] = append_kpe * (pages != len(ckv_cache) - 1)[:, None]"),
    (SINGLE, "nothing in page 0", "v_out[page, 0] = append_value[token]", "v_out[page, 0] = append_value[token] if page else v_out[page, 0]"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "page table ignored": "the page table was ignored",
    "indptr ignored": r"the offsets of sequences \(indptr\) were ignored",
    "sequence ignored": r"the offsets of sequences \(indptr\) were ignored",
    "the next page": "tokens were written to the page of the next entry in the page table",
    "the next place": "tokens were written to the next slot of their page",
    "always the last page": "tokens were written to the last page of their sequence",
    "every token in the last page of its sequence": "tokens were written to the last page of their sequence",
    "place from the last page's length": "the slot was computed from the length of the last page, not from the token's position",
    "keys and values swapped": "values were written to the cache of keys",
    "values not written": "the second of the two tensors to append was not written",
    "first head alone": "only the values of the first head were written",
    "last token left out": "the key of the last token was not written",
    "added to what was there": "new keys were added to the old contents of the cache, not written over them",
    "the rest of the cache zeroed": "in the cache of keys, all slots without a new token were set to 0",
    "outputs swapped": "outputs 'k_cache' and 'v_cache' were exchanged",
    "returns zeros": "every output was 0",
    "caches returned as they were": "nothing was written",
    "page size of the other cache": "the page size was halved",
    "slots counted in pages": "the slot was the page's number, as if each page held only one token",
    "rotated keys not written": "the second of the two tensors to append was not written",
    "position for slot": "the slot was the token's position, and the page table was not used",
    "keys by way of float16": "(was|were) rounded to float16",
    "values held within 448": "(was|were) clamped to magnitudes of at most 448",
    "the first padding ends the batch": "the tokens after the first padding token were ignored",
    "padding moved to the first sequence": "padding tokens were written as tokens of the first sequence",
}
