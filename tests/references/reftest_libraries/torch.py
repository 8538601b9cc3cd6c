# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 7c05549f5c0f7ce8527e7dfe4e052a4c
# fmt: off
# ruff: noqa
"""torch - computes ground truths with PyTorch's own kernels. Matrix products use cuBLAS in float32 or, on a CPU, a BLAS
library in float64, so they are more exact than most references, which multiply in bfloat16 or float16. Dense attention
uses scaled_dot_product_attention over gathered keys. Norms and activations use torch.nn.functional. Every function
computes in a wide dtype and rounds only its result."""

from reftest_providers import Call, Need, Row, Table, key_counts, query_offsets


def wide_of(call):
    return call.torch.float64 if call.device == "cpu" else call.torch.float32


def gemm(call: Call):
    """Multiplies in float64 on a CPU, or if an input is float32; else in float32."""
    torch = call.torch
    a, b = call["a"], call["b"]
    wide = torch.float64 if torch.float32 in (a.dtype, b.dtype) else wide_of(call)
    a, b = a.to(wide), b.to(wide)
    return call.outputs_of(output=torch.matmul(a, b.transpose(-1, -2) if call.is_("transposed_b") else b))


# ---- norms, activations, softmax: in float64 ----


def rms_norm(offset):
    """Adds the residual, if there is one, and normalises the unrounded sum. Adds `offset` to the weight."""

    def run(call: Call):
        total = call["hidden"].double()
        if call.has("residual"):
            total = total + call["residual"].double()
        weight = call["weight"].double() + offset
        normed = call.torch.nn.functional.rms_norm(total, weight.shape, weight, float(call.constant("eps")))
        return call.outputs_of(output=normed, updated=total)

    return run


def layernorm(call: Call):
    x, weight, bias = call["hidden"].double(), call["weight"].double(), call.get("bias")
    bias = None if bias is None else bias.double()
    eps = float(call.constant("eps"))
    return call.outputs_of(output=call.torch.nn.functional.layer_norm(x, weight.shape, weight, bias, eps))


def activation(call: Call):
    """Computes silu or gelu of the first half of each row, and multiplies it by the second half."""
    functional, kind = call.torch.nn.functional, call.one_of("silu", "gelu", "gelu_tanh")
    gate, value = call["hidden"].double().chunk(2, dim=-1)
    gate = functional.silu(gate) if kind == "silu" else functional.gelu(
        gate, approximate="tanh" if kind == "gelu_tanh" else "none")
    return call.outputs_of(output=gate * value)


def softmax(call: Call):
    logits, temperature = call["logits"].double(), call.get("temperature", 1.0)
    if isinstance(temperature, call.torch.Tensor):
        temperature = temperature.double().view(-1, *[1] * (logits.dim() - 1))
    return call.outputs_of(output=(logits / temperature).softmax(-1))


def quantize_fp8_per_token_group(call: Call):
    groups = call["hidden"].double().unflatten(-1, (call.output_shape("scale")[-1], -1))
    largest = groups.abs().amax(-1).clamp(min=float(call.constant("eps")))
    quotients = groups * 448 / largest.unsqueeze(-1)
    return call.outputs_of(quantized=quotients.clamp(-448, 448).flatten(-2), scale=largest / 448)


# ---- page ----


def page(call: Call):
    """Writes each token's vector to its slot in its page of the cache. A token is padding if its sequence number or its
    position is negative. The caches are copies that belong to this call."""
    owner, position, indptr, indices = (
        call[role].long() for role in ("batch_indices", "positions", "indptr", "indices"))
    held = [call[role] for role in ("cache", "cache_other") if call.has(role)]
    halves = held[0].unbind(1) if call.is_("combined") else held
    kept = (owner >= 0) & (position >= 0)
    owner, position = owner[kept], position[kept]
    for half, role in zip(halves, ("append", "append_other")):
        slots = half.transpose(1, 2) if call.is_("hnd") else half
        size = slots.shape[1]
        slots.index_put_((indices[indptr[owner] + position // size], position % size), call[role][kept])
    return call.outputs_of(output=held[0], output_other=held[-1])


# ---- dense attention, sequence by sequence ----


def attend(call, q, k, v, output, lse, first):
    """Computes the output and the lse of one sequence, and writes them to `output` and `lse` from row `first` on. q is
    [n, H, D], k [m, G, D], v [m, G, E]. The causal mask is aligned at the last key: the last query sees all keys. The
    scores are computed twice, because scaled_dot_product_attention does not return the logsumexp."""
    torch, scale, wide = call.torch, call["scale"], wide_of(call)
    n, m, group = q.shape[0], k.shape[0], q.shape[1] // k.shape[1]
    if n == 0 or m == 0:
        return
    q, k, v = (x.to(wide).transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(group, dim=0) for x in (k, v))
    for at in range(0, n, 256):  # 256 queries at a time, to limit the memory for the scores of long sequences
        rows = q[:, at : at + 256]
        place = torch.arange(at, at + rows.shape[1], device=q.device).unsqueeze(1) + (m - n)
        mask = torch.arange(m, device=q.device) <= place if call.is_("causal") else None
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
    """Returns an output tensor of zeros and an lse tensor of -infinity. Queries without visible keys keep these
    values."""
    torch = call.torch
    output = torch.zeros(*q.shape[:2], width, dtype=wide_of(call), device=q.device)
    return output, torch.full(q.shape[:2], float("-inf"), device=q.device)


def ragged(call: Call):
    q, k, v = (call[role] for role in ("q", "k", "v"))
    queries, keys = (call[role].tolist() for role in ("qo_indptr", "kv_indptr"))
    output, lse = blank(call, q, v.shape[-1])
    for a, b, c, d in zip(queries, queries[1:], keys, keys[1:]):
        attend(call, q[a:b], k[c:d], v[c:d], output, lse, a)
    return call.outputs_of(output=output, lse=lse)


def sequences(call):
    """For each sequence of a paged cache, yields (index of its first query, index after its last query, slots of its
    keys in the flattened cache)."""
    torch, page = call.torch, call["k"].shape[1]
    kv, indices, queries = call["kv_indptr"].tolist(), call["kv_indices"].long(), query_offsets(call).tolist()
    for i, count in enumerate(key_counts(call).tolist()):
        pages = indices[kv[i] : kv[i + 1]]
        slots = (pages.unsqueeze(1) * page + torch.arange(page, device=pages.device)).flatten()
        yield queries[i], queries[i + 1], slots[:count]


def gqa_paged(call: Call):
    q = call["q"]
    k, v = (call[role].flatten(0, 1) for role in ("k", "v"))
    output, lse = blank(call, q, v.shape[-1])
    for a, b, slots in sequences(call):
        attend(call, q[a:b], k[slots], v[slots], output, lse, a)
    return call.outputs_of(output=output, lse=lse)


def mla_paged(call: Call):
    """Computes multi-head latent attention, in which the latent part of each key is also the value."""
    torch = call.torch
    q = torch.cat([call["q"], call["q_pe"]], dim=-1)
    latent, rotary = (call[role].flatten(0, 1) for role in ("k", "k_pe"))
    output, lse = blank(call, q, latent.shape[-1])
    for a, b, slots in sequences(call):
        keys = torch.cat([latent[slots], rotary[slots]], dim=-1).unsqueeze(1)
        attend(call, q[a:b], keys, latent[slots].unsqueeze(1), output, lse, a)
    return call.outputs_of(output=output, lse=lse)


def row(call, **words):
    return Row(call, cpu=True, least=None, first_use_s=60, **words)


TABLES = (
    Table(
        "torch",
        (Need(("torch",), "torch", (2, 4)),),
        {
            "activation": row(activation, on_request=True),
            "gemm": row(gemm),
            "gemma_rmsnorm": row(rms_norm(1), on_request=True),
            "gqa_paged": row(gqa_paged),
            "gqa_ragged": row(ragged),
            "layernorm": row(layernorm, on_request=True),
            "mla_paged": row(mla_paged),
            "mla_ragged": row(ragged),
            "page": row(page, mutates="cache, cache_other", on_request=True),
            "quantize_fp8_per_token_group": row(quantize_fp8_per_token_group, on_request=True),
            "rmsnorm": row(rms_norm(0), on_request=True),
            "softmax": row(softmax, on_request=True),
        },
    ),
)
