"""torch as a ground truth: what PyTorch's own kernels can say. gemm by cuBLAS or the CPU's BLAS in float32 (the references
multiply in the narrow dtype), dense attention by scaled_dot_product_attention over gathered keys, norms and activations by
torch.nn.functional. All of it computes wide and rounds once."""

from reftest_parts import Attention, is_causal, offsets_list
from reftest_providers import Call, Need, Row, Table


def gemm(call: Call):
    """C = A B^T (variant 0) or A B (variant 1). float32 inputs are multiplied in float64."""
    torch = call.torch
    a, b = call.tensors(least_rank=2)
    names, (output,) = list(call.inputs), call.outputs
    if not fits_left(call.axes_of, names[0], output) and fits_left(call.axes_of, names[1], output):
        a, b = b, a
    wide = torch.float64 if torch.float32 in (a.dtype, b.dtype) or call.device == "cpu" else torch.float32
    a, b = a.to(wide), b.to(wide)
    return call.cut(torch.matmul(a, b.transpose(-1, -2) if call.variant == 0 else b))


def fits_left(axes_of, name, output):
    """Has the output all its axes but the last from this input?"""
    return axes_of[name][:-1] == axes_of[output][:-1]


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


def ragged(call: Call):
    parts = Attention(call)
    q, k, v = parts.whole()
    queries, keys = (offsets_list(x) for x in (parts.queries, parts.keys))
    output, lse = blank(call, q, v.shape[-1])
    for i in range(len(queries) - 1):
        a, b, c, d = queries[i], queries[i + 1], keys[i], keys[i + 1]
        attend(call, q[a:b], k[c:d], v[c:d], parts.scale, is_causal(call), output, lse, a)
    return call.cut(output, lse)


def sequences(parts, cache, rows):
    """(first query, past the last query, slots of the keys in the flattened cache) of each sequence of a paged cache."""
    torch = parts.call.torch
    kv, indices, page = offsets_list(parts.keys), parts.indices.long(), cache.shape[1]
    queries = offsets_list(parts.queries) if parts.queries is not None else list(range(rows + 1))
    for i in range(len(kv) - 1):
        pages = indices[kv[i] : kv[i + 1]]
        slots = (pages.unsqueeze(1) * page + torch.arange(page, device=pages.device)).flatten()
        keys = len(slots)
        if parts.last is not None and len(pages) > 0:
            keys += int(parts.last[i]) - page
        yield queries[i], queries[i + 1], slots[:keys]


def gqa_paged(call: Call):
    parts = Attention(call)
    q, k, v = parts.whole()
    flat = [x.reshape(-1, *x.shape[2:]) for x in (k, v)]
    output, lse = blank(call, q, v.shape[-1])
    causal = is_causal(call)
    for a, b, slots in sequences(parts, k, q.shape[0]):
        attend(call, q[a:b], flat[0][slots], flat[1][slots], parts.scale, causal, output, lse, a)
    return call.cut(output, lse)


def mla_paged(call: Call):
    torch = call.torch
    parts = Attention(call)
    q_nope, q_pe, ckv, kpe = parts.latent()
    flat = [x.reshape(-1, x.shape[-1]) for x in (ckv, kpe)]
    q = torch.cat([q_nope, q_pe], dim=-1)
    output, lse = blank(call, q, ckv.shape[-1])
    causal = is_causal(call)
    for a, b, slots in sequences(parts, ckv, q.shape[0]):
        latents, rotary = (x[slots] for x in flat)
        keys = torch.cat([latents, rotary], dim=-1).unsqueeze(1)
        attend(call, q[a:b], keys, latents.unsqueeze(1), parts.scale, causal, output, lse, a)
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
