# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 9ec0f435552f87aa156f60c6cec6a428
# fmt: off
# ruff: noqa
"""sglang - computes ground truths with SGLang. The table "sglang" uses SGLang's Triton kernels and was written for
sglang 0.5.23. The table "sgl_kernel" uses SGLang's compiled kernels and was written for sglang-kernel 0.4.10 and
sgl-kernel 0.3.21."""

import contextlib
import sys
import types

from reftest_providers import (
    Call, GatedDelta, Need, Row, Table, Unavailable, choose_experts, expert_values, filters_of, hidden_values, int32,
    interleaved, kept_by_top_k, key_counts, page_counts, query_offsets, require_16_bits, require_elements, rows_of)

TRITON = (Need(("sglang",), "sglang", (0, 5)), Need(("triton",), "triton", (3, 0)), Need(("sglang-kernel",), optional=True))
# If FlashInfer is installed, some functions of SGLang call FlashInfer's kernels; by_itself rejects these functions.
COMPILED = (Need(("sglang-kernel", "sgl-kernel"), "sgl_kernel", (0, 3)),
            Need(("flashinfer-python", "flashinfer"), optional=True))
LN2 = 0.6931471805599453
ATTENTION = {"output": (1e-2, 2e-2), "lse": (1e-2, 1e-3)}
ROTATED = (3e-3, 1e-2)


def of(module, name):
    if not hasattr(module, name):
        raise Unavailable("this release has no %s" % name)
    return getattr(module, name)


def by_itself(module):
    """Raises Unavailable if FlashInfer is installed, because some functions of SGLang then call FlashInfer's kernels.
    Such a function is not a ground truth of its own, because its results are those of FlashInfer."""
    if getattr(sys.modules.get(module), "_has_flashinfer", False):
        raise Unavailable("it calls FlashInfer's kernels when FlashInfer is installed, so it is not an independent "
                          "ground truth")


def flash_attention(name):
    """Returns a function of sgl_kernel.flash_attn. The functions of sgl_kernel.flash_attn are in a separate shared
    library of about a gigabyte, which some builds of sgl_kernel omit."""
    try:
        from sgl_kernel import flash_attn
    except ImportError as problem:
        raise Unavailable("cannot import sgl_kernel.flash_attn: %s" % problem) from problem
    return getattr(flash_attn, name)


# ---- experts ----


@contextlib.contextmanager
def without_server():
    """Gives SGLang the default configuration of a server and a process group with one process. SGLang's layers read
    both, even if no server runs."""
    from sglang.srt.runtime_context import get_context, get_parallel
    from sglang.srt.server_args import ServerArgs

    if not get_context().is_config_namespace_published("exec"):
        get_context().set_server_args(ServerArgs(model_path="none"))
    with get_parallel().override(tp_group=types.SimpleNamespace(world_size=1)):
        yield


def halves_swapped(x, size):
    """Swaps the two halves of a weight or scale, because the gate's half comes first in SGLang, but second in
    definitions."""
    return x.roll(size, dims=1).contiguous()


def moe(call: Call):
    """Computes the experts with fused_experts. The operands are dequantised to bfloat16 first, because the fp8 mode of
    fused_experts would quantise the activations again. Experts of other devices are passed as -1."""
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import fused_experts_impl

    torch = call.torch
    require_elements(call["hidden"])
    w1, w2 = expert_values(call)
    weights, experts = choose_experts(call)
    experts = experts.long() - int(call.get("offset", 0))
    outside = (experts < 0) | (experts >= w1.shape[0])
    with without_server():
        output = fused_experts_impl(
            hidden_values(call).to(torch.bfloat16).contiguous(), halves_swapped(w1, w1.shape[1] // 2).to(torch.bfloat16),
            w2.to(torch.bfloat16).contiguous(), weights.float().masked_fill(outside, 0.0).contiguous(),
            int32(experts.masked_fill(outside, -1)).contiguous(), inplace=False,
            apply_router_weight_on_input=call.is_("weights_on_input"), filter_expert=True)
    call.noise = 0.01
    return call.outputs_of(output=output)


# ---- recurrences ----


def gdn(call: Call):
    """Computes the gated delta net with a fused kernel, which computes the gates, the delta correction and the states.
    The kernel updates the states in place. These states are copies for this call."""
    from sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent import fused_sigmoid_gating_delta_rule_update

    torch, form = call.torch, GatedDelta(call)
    require_elements(form.q)
    if form.v_last:
        raise Unavailable("its states are [V, K], but the definition's are [K, V]")
    q, k, v, a, b, cu_seqlens = form.q, form.k, form.v, form.a, form.b, form.cu_seqlens
    batch, tokens = q.shape[:2]
    if cu_seqlens is None:
        cu_seqlens = torch.arange(0, (batch + 1) * tokens, tokens, device=q.device)
        q, k, v, a, b = (x.reshape(1, -1, *x.shape[2:]) for x in (q, k, v, a, b))
    else:
        q, k, v, a, b = (x.unsqueeze(0) for x in (q, k, v, a, b))
    state = form.zero_state() if form.state is None else form.state
    slots = torch.arange(len(cu_seqlens) - 1, device=q.device) if form.indices is None else form.indices
    output = fused_sigmoid_gating_delta_rule_update(
        form.a_log.float(), a.contiguous(), form.dt_bias.float(), 1.0, 20.0, q.contiguous(), k.contiguous(), v.contiguous(),
        b.contiguous(), state, int32(slots), scale=form.scale, use_qk_l2norm_in_kernel=form.l2norm,
        cu_seqlens=int32(cu_seqlens), disable_state_update=form.indices is not None and not form.updates)
    return call.outputs_of(output=output.reshape(form.v.shape), new_state=state)


def mamba_ssu(call: Call):
    from sglang.kernels.ops.mamba.triton_ops.mamba_ssm import selective_state_update

    state, x, indices, pad = call["state"], call["x"], call.get("indices"), int(call.get("pad", -1))
    require_elements(x)
    heads, dim, width = state.shape[1:]

    def spread(value, shape):
        if value is None:
            return None
        while value.dim() < len(shape):
            value = value.unsqueeze(-1)
        return value.expand(shape)

    output = call.torch.zeros_like(x)
    selective_state_update(
        state, x, spread(call["dt"], x.shape), spread(call["a"], (heads, dim, width)), call["b"], call["c"],
        D=spread(call.get("d"), (heads, dim)), z=call.get("z"), dt_bias=spread(call.get("dt_bias"), (heads, dim)),
        dt_softplus=bool(call.get("softplus", True)), state_batch_indices=indices, pad_slot_id=pad, out=output)
    if indices is not None:  # for padding, the definition returns 0, but the kernel returns other values
        output[indices == pad] = 0
    return call.outputs_of(output=output, new_state=state)


def quantize_fp8_per_token_group(call: Call):
    """Quantises to fp8, with a scale for each group of channels. Rows that consist of one group are not supported,
    because SGLang quantises them with another kernel, which has no lower bound for scales. If the definition's lower
    bound for scales is not 1e-10, the library raises an exception."""
    from sglang.kernels.ops.quantization.fp8_kernel import sglang_per_token_group_quant_fp8

    x, groups = rows_of(call["hidden"]), call.output_shape("scale")[-1]
    require_16_bits(x)
    require_elements(x)
    if groups == 1:
        raise Unavailable("it requires rows of more than one group")
    quantized, scale = sglang_per_token_group_quant_fp8(x, x.shape[1] // groups, eps=float(call.constant("eps")))
    return call.outputs_of(quantized=quantized.view(call["hidden"].shape), scale=scale.view(call.output_shape("scale")))


# ---- compiled kernels ----


def norm(plain_name, fused_name):
    """The fused kernel writes to both of its input tensors, which are copies that belong to this call."""

    def run(call: Call):
        import sgl_kernel

        by_itself("sgl_kernel.elementwise")
        hidden, residual, weight = call["hidden"], call.get("residual"), call["weight"]
        require_16_bits(hidden, weight, *([] if residual is None else [residual]))
        eps = float(call.constant("eps"))
        normed, total = rows_of(hidden), None if residual is None else rows_of(residual)
        if total is None:
            return call.outputs_of(output=of(sgl_kernel, plain_name)(normed, weight, eps=eps).view(hidden.shape))
        of(sgl_kernel, fused_name)(normed, total, weight, eps=eps)
        return call.outputs_of(output=normed.view(hidden.shape), updated=total.view(hidden.shape))

    return run


def activation(call: Call):
    import sgl_kernel

    require_16_bits(call["hidden"])
    run = of(sgl_kernel, call.one_of("silu", "gelu", "gelu_tanh") + "_and_mul")
    return call.outputs_of(output=run(call["hidden"].contiguous()))


def cascade(call: Call):
    """Merges attention states with merge_state_v2, which uses natural logarithms. merge_state, the predecessor of
    merge_state_v2, uses base 2 and exists only in older releases."""
    import sgl_kernel

    if call.is_("many") or call.has("mask"):
        raise Unavailable("it merges exactly two states, and has no mask")
    v, s, v_other, s_other = (call[role].contiguous() for role in ("v", "s", "v_other", "s_other"))
    merged, lse = of(sgl_kernel, "merge_state_v2")(v, s * LN2, v_other, s_other * LN2)
    return call.outputs_of(v_merged=merged, s_merged=lse / LN2)


def rope(call: Call):
    """Rotates q and k in place; they are copies for this call. With newer releases of SGLang, which lack this kernel,
    the function raises Unavailable."""
    import sgl_kernel

    if not call.has("cos_sin_cache"):
        raise Unavailable("it requires a cache of cosines and sines")
    if not call.has("k") or call["q"].dim() != 3:
        raise Unavailable("it requires q and k of shape [tokens, heads, dim]")
    q, k = call["q"].contiguous(), call["k"].contiguous()
    require_16_bits(q, k)
    of(sgl_kernel, "apply_rope_with_cos_sin_cache_inplace")(
        positions=call["positions"].long(), query=q.view(len(q), -1), key=k.view(len(k), -1), head_size=q.shape[-1],
        cos_sin_cache=call["cos_sin_cache"].float(), is_neox=not interleaved(call))
    return call.outputs_of(q_out=q, k_out=k)


def sampling(call: Call):
    from sgl_kernel import sampling as module

    by_itself(module.__name__)
    if not call.is_("renormalise"):
        raise Unavailable("it samples with FlashInfer's kernels, so it is not an independent ground truth")
    filters = filters_of(call)
    if filters not in (["top_k"], ["top_p"]):
        raise Unavailable("it renormalises only after top-k or top-p filtering")
    value = kept_by_top_k(call) if filters == ["top_k"] else call["top_p"]
    probs = call["probs"].float().contiguous()
    return call.outputs_of(output=of(module, filters[0] + "_renorm_probs")(probs, value))


# ---- attention ----


def lse_out(lse, heads):
    """Converts an lse from [heads, queries] with natural logarithms to [queries, heads] with base 2."""
    return (lse.t() if lse.shape[0] == heads else lse).float() / LN2


def seen(call, output, lse, queries, lengths):
    """Returns the outputs. For queries without visible keys, the kernel's values are arbitrary, so they are replaced:
    the output by 0, and the lse by -infinity."""
    torch = call.torch
    counts = queries[1:] - queries[:-1]
    sequence = torch.repeat_interleave(torch.arange(len(counts), device=output.device), counts)
    keys = lengths[sequence].long()
    if call.is_("causal"):
        place = torch.arange(len(sequence), device=output.device) - queries[sequence]
        keys = keys - counts[sequence] + place + 1
    blind = (keys <= 0).view(-1, 1)
    return call.outputs_of(output=output.masked_fill(blind.unsqueeze(-1), 0), lse=lse.masked_fill(blind, float("-inf")))


def ragged(call: Call):
    flash_attn_varlen_func = flash_attention("flash_attn_varlen_func")
    q, k, v = (call[role] for role in ("q", "k", "v"))
    require_16_bits(q, k, v)
    require_elements(q)
    queries, keys = int32(call["qo_indptr"]), int32(call["kv_indptr"])
    longest = [int((x[1:] - x[:-1]).max()) for x in (queries, keys)]
    output, lse, *_ = flash_attn_varlen_func(
        q, k, v, queries, keys, *longest, softmax_scale=float(call["scale"]), causal=call.is_("causal"),
        return_softmax_lse=True)
    return seen(call, output, lse_out(lse, q.shape[1]), queries, keys[1:] - keys[:-1])


def page_table(call):
    """Returns the page numbers of each sequence as a tensor [sequences, largest number of pages], padded with 0."""
    pages, kv = page_counts(call), call["kv_indptr"].tolist()
    table = call.torch.zeros(len(pages), max(int(pages.max()), 1), dtype=call.torch.int32, device=call["kv_indices"].device)
    for i, (a, b) in enumerate(zip(kv, kv[1:])):
        table[i, : b - a] = call["kv_indices"][a:b]
    return table


def paged(call, q, k, v, **more):
    """Computes attention with FlashAttention 3 over a paged cache [pages, page size, heads, dim]."""
    flash_attn_with_kvcache = flash_attention("flash_attn_with_kvcache")
    require_16_bits(q, k, v)
    require_elements(q)
    queries, lengths = int32(query_offsets(call)), key_counts(call)
    output, lse, *_ = flash_attn_with_kvcache(
        q, k, v, cache_seqlens=int32(lengths), page_table=page_table(call), cu_seqlens_q=queries,
        max_seqlen_q=int((queries[1:] - queries[:-1]).max()), softmax_scale=float(call["scale"]), causal=call.is_("causal"),
        return_softmax_lse=True, **more)
    return seen(call, output, lse_out(lse, q.shape[1]), queries, lengths)


def gqa_paged(call: Call):
    return paged(call, call["q"], call["k"], call["v"])


def mla_paged(call: Call):
    """Computes latent attention with FlashAttention 3. The latent keys are passed as the values, and the latent queries
    as the argument qv."""
    return paged(call, call["q_pe"], call["k_pe"].unsqueeze(2), call["k"].unsqueeze(2), qv=call["q"])


def dsa_paged(call: Call):
    """Computes sparse attention with FlashMLA. FlashMLA requires a multiple of 64 heads (128 on Blackwell), so heads of
    zeros are added. The lse of FlashMLA is in base 2; for a query without keys it is a large number of either sign."""
    if call.is_("indexer"):
        raise Unavailable("it has kernels only for parts of an indexer")
    from sgl_kernel.flash_mla import flash_mla_sparse_fwd

    torch, latent, chosen = call.torch, call["q"], call["sparse"]
    require_16_bits(latent, call["k"])
    require_elements(latent)
    heads, width = latent.shape[1:]
    step = 64 if call.device_class == "sm_90" else 128
    query = torch.cat([latent, call["q_pe"]], dim=-1)
    query = torch.nn.functional.pad(query, (0, 0, 0, -heads % step))
    keys = torch.cat([call["k"], call["k_pe"]], dim=-1).flatten(0, 1).unsqueeze(1)
    output, _, lse = flash_mla_sparse_fwd(query, keys, int32(chosen).unsqueeze(1), sm_scale=float(call["scale"]), d_v=width)
    blind = (chosen < 0).all(1).view(-1, 1)
    return call.outputs_of(output=output[:, :heads].masked_fill(blind.unsqueeze(-1), 0),
                           lse=lse[:, :heads].float().masked_fill(blind, float("-inf")))


TABLES = (
    Table(
        "sglang",
        TRITON,
        {
            "gdn": Row(gdn, mutates="state", coarse={"output": (1e-3, 2e-2), "new_state": (1e-3, 1e-2)}),
            "mamba_ssu": Row(mamba_ssu, mutates="state", coarse={"output": (1e-3, 1e-2), "new_state": (1e-3, 1e-2)}),
            "moe": Row(moe, coarse={"output": (0.0, 2e-2)}),
            "quantize_fp8_per_token_group": Row(quantize_fp8_per_token_group, on_request=True),
        },
    ),
    Table(
        "sgl_kernel",
        COMPILED,
        {
            "activation": Row(activation, first_use_s=120, coarse={"output": (1e-3, 2e-2)}),
            "cascade": Row(cascade, first_use_s=120, coarse={"v_merged": (1e-3, 1e-2), "s_merged": (1e-3, 1e-3)}),
            "dsa_paged": Row(dsa_paged, least=90, first_use_s=120, coarse=ATTENTION, on_request=True),
            "gemma_rmsnorm": Row(norm("gemma_rmsnorm", "gemma_fused_add_rmsnorm"), first_use_s=120,
                                 mutates="hidden, residual"),
            "gqa_paged": Row(gqa_paged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "gqa_ragged": Row(ragged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "mla_paged": Row(mla_paged, least=90, most=90, first_use_s=120, coarse=ATTENTION, on_request=True),
            "mla_ragged": Row(ragged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "rmsnorm": Row(norm("rmsnorm", "fused_add_rmsnorm"), first_use_s=120, mutates="hidden, residual"),
            "rope": Row(rope, first_use_s=120, mutates="q, k", coarse={"q_out": ROTATED, "k_out": ROTATED}, on_request=True),
            "sampling": Row(sampling, first_use_s=120),
        },
    ),
)
