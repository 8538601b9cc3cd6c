"""torch as a ground truth: what PyTorch's own kernels can say. gemm by cuBLAS or the CPU's BLAS in float32 (the references
multiply in the narrow dtype), dense attention by scaled_dot_product_attention over gathered keys, norms and activations by
torch.nn.functional. All of it computes wide and rounds once."""

from reftest_providers import Call, Need, Row, Table, Unavailable, is_causal, offsets_list


def gemm(call: Call):
    """C = A B^T (variant 0) or A B (variant 1). float32 inputs are multiplied in float64."""
    torch = call.torch
    a, b = call.tensors(least_rank=2)
    wide = torch.float64 if torch.float32 in (a.dtype, b.dtype) or call.device == "cpu" else torch.float32
    a, b = a.to(wide), b.to(wide)
    return call.cut(torch.matmul(a, b.transpose(-1, -2) if call.variant == 0 else b))


# ---- dense attention: one sequence after the other ----


def attend(call, q, k, v, scale, causal, output, lse, first):
    """Rows first … of output and lse for one sequence. q [n, H, D], k [m, G, D], v [m, G, E]. The mask is aligned at the
    end of the keys. Scores once more for the logsumexp, which scaled_dot_product_attention keeps to itself."""
    torch = call.torch
    n, m, group = q.shape[0], k.shape[0], q.shape[1] // k.shape[1]
    if n == 0 or m == 0:
        return
    wide = torch.float64 if call.device == "cpu" else torch.float32
    q, k, v = (x.to(wide).transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(group, dim=0) for x in (k, v))
    for at in range(0, n, 256):  # so that scores of long sequences fit
        rows = q[:, at : at + 256]
        place = torch.arange(at, at + rows.shape[1], device=q.device).unsqueeze(1) + (m - n)
        mask = torch.arange(m, device=q.device) <= place if causal else None
        got = torch.nn.functional.scaled_dot_product_attention(
            rows.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), attn_mask=mask, scale=scale)[0]
        scores = torch.matmul(rows, k.transpose(1, 2)) * scale
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
            got = torch.where(mask.any(-1).unsqueeze(-1), got, torch.zeros((), dtype=wide, device=q.device))
        total = torch.logsumexp(scores, dim=-1) / 0.6931471805599453
        span = slice(first + at, first + at + rows.shape[1])
        output[span] = got.transpose(0, 1)
        lse[span] = total.transpose(0, 1).float()


def blank(call, q, width):
    """0 and -infinity: what a query has that sees no key."""
    torch = call.torch
    wide = torch.float64 if call.device == "cpu" else torch.float32
    output = torch.zeros(*q.shape[:2], width, dtype=wide, device=q.device)
    return output, torch.full(q.shape[:2], float("-inf"), device=q.device)


def scale_of(call):
    scale = call.scalar("scale")
    if scale is None:
        raise Unavailable("the definition has no scale")
    return float(scale)


def ragged(call: Call):
    q, k, v = call.tensors(least_rank=3)
    queries, keys = (offsets_list(call.with_word(word)) for word in ("qo_indptr", "kv_indptr"))
    output, lse = blank(call, q, v.shape[-1])
    for i in range(len(queries) - 1):
        a, b, c, d = queries[i], queries[i + 1], keys[i], keys[i + 1]
        attend(call, q[a:b], k[c:d], v[c:d], scale_of(call), is_causal(call), output, lse, a)
    return call.cut(output, lse)


def sequences(call, rows):
    """(first query, past the last query, slots of the keys in the flattened cache) of each sequence of a paged cache."""
    torch = call.torch
    kv, indices = offsets_list(call.with_word("kv_indptr")), call.with_word("kv_indices").long()
    last, queries = call.with_word("last_page"), call.with_word("qo_indptr")
    page = next(x for x in call.tensors(least_rank=3) if x.dim() >= 3 and x is call.with_word("cache")).shape[1]
    queries = offsets_list(queries) if queries is not None else list(range(rows + 1))
    for i in range(len(kv) - 1):
        pages = indices[kv[i] : kv[i + 1]]
        slots = (pages.unsqueeze(1) * page + torch.arange(page, device=pages.device)).flatten()
        keys = len(slots)
        if last is not None and len(pages) > 0:
            keys += int(last[i]) - page
        yield queries[i], queries[i + 1], slots[:keys]


def gqa_paged(call: Call):
    q, k, v = call.tensors(least_rank=3)
    flat = [x.reshape(-1, *x.shape[2:]) for x in (k, v)]
    output, lse = blank(call, q, v.shape[-1])
    causal = is_causal(call)
    for a, b, slots in sequences(call, q.shape[0]):
        attend(call, q[a:b], flat[0][slots], flat[1][slots], scale_of(call), causal, output, lse, a)
    return call.cut(output, lse)


def mla_paged(call: Call):
    torch = call.torch
    q_nope, q_pe, ckv, kpe = call.tensors(least_rank=3)
    flat = [x.reshape(-1, x.shape[-1]) for x in (ckv, kpe)]
    q = torch.cat([q_nope, q_pe], dim=-1)
    output, lse = blank(call, q, ckv.shape[-1])
    causal = is_causal(call)
    for a, b, slots in sequences(call, q.shape[0]):
        latents, rotary = (x[slots] for x in flat)
        keys = torch.cat([latents, rotary], dim=-1).unsqueeze(1)
        attend(call, q[a:b], keys, latents.unsqueeze(1), scale_of(call), causal, output, lse, a)
    return call.cut(output, lse)


TABLES = (
    Table(
        "torch",
        (Need(("torch",), "torch", (2, 4)),),
        {
            "gemm": Row(gemm, cpu=True, least=None, first_use_s=60),
            "gqa_ragged": Row(ragged, cpu=True, least=None, first_use_s=60),
            "mla_ragged": Row(ragged, cpu=True, least=None, first_use_s=60),
            "gqa_paged": Row(gqa_paged, cpu=True, least=None, first_use_s=60),
            "mla_paged": Row(mla_paged, cpu=True, least=None, first_use_s=60),
        },
    ),
)
