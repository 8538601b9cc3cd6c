"""SGLang as a ground truth: its Triton kernels ("sglang", read against 0.5.23), and its compiled ones ("sgl_kernel", read
against sglang-kernel 0.4.10 and sgl-kernel 0.3.21)."""

import contextlib
import sys
import types

from reftest_parts import (
    Attention, GatedDelta, choose_as_deepseek, expert_number, filter_parameter, is_causal, kept_by_top_k, merged_states,
    normed_outputs, only_known_experts, scaled_hidden, spread, ssu_parts)
from reftest_providers import Call, Need, Row, Table, Unavailable

TRITON = (Need(("sglang",), "sglang", (0, 5)), Need(("triton",), "triton", (3, 0)), Need(("sglang-kernel",), optional=True))
# Where FlashInfer is installed, some of them are its kernels: see by_itself.
COMPILED = (Need(("sglang-kernel", "sgl-kernel"), "sgl_kernel", (0, 3)),
            Need(("flashinfer-python", "flashinfer"), optional=True))
LN2 = 0.6931471805599453
ATTENTION = ((1e-2, 2e-2), (1e-2, 1e-3))
GIVEN, DEEPSEEK, RENORMALISE, LLAMA4 = 0, 1, 2, 3  # variants of moe; 4: weights are applied to the input


def narrow(*tensors):
    if any(str(x.dtype) not in ("torch.bfloat16", "torch.float16") for x in tensors):
        raise Unavailable("it takes float16 and bfloat16")


def of(module, name):
    if not hasattr(module, name):
        raise Unavailable("this release has no %s" % name)
    return getattr(module, name)


def by_itself(module):
    """Where FlashInfer is installed, these hand on to its kernels: that is no second witness."""
    if getattr(sys.modules.get(module), "_has_flashinfer", False):
        raise Unavailable("it calls FlashInfer's kernels where FlashInfer is installed")


def flash_attention(name):
    """Of a library of their own, a gigabyte, which some builds are made without."""
    try:
        from sgl_kernel import flash_attn
    except ImportError as problem:
        raise Unavailable("sgl_kernel.flash_attn cannot be imported: %s" % problem) from problem
    return getattr(flash_attn, name)


# ---- experts ----


@contextlib.contextmanager
def without_server():
    """Its layers ask the configuration and the group of ranks of a server, of which none is started here: the defaults, and a
    group of one."""
    from sglang.srt.runtime_context import get_context, get_parallel
    from sglang.srt.server_args import ServerArgs

    if not get_context().is_config_namespace_published("exec"):
        get_context().set_server_args(ServerArgs(model_path="none"))
    with get_parallel().override(tp_group=types.SimpleNamespace(world_size=1)):
        yield


def routing(call):
    """(weights [T, K], experts [T, K]), in float32. The choice is the definition's own; what is witnessed are the experts."""
    torch = call.torch
    method = call.variant & 3
    if method == GIVEN:
        packed = call["topk_ids"]
        weights = (packed & 0xFFFF).to(torch.int16).view(torch.bfloat16).float()
        return weights, packed >> 16
    count = int(expert_number(call, "top_k"))
    logits = call["routing_logits"].float()
    if method == RENORMALISE:
        values, experts = torch.topk(logits, count, dim=-1)
        return torch.softmax(values, -1), experts
    if method == LLAMA4:
        return torch.topk(torch.sigmoid(logits), count, dim=-1)
    return choose_as_deepseek(call, logits, count)


def halves_swapped(x, size):
    """Its first half of the first product is the gate's, the definition's is the linear one."""
    return x.roll(size, dims=1).contiguous()


def moe(call: Call):
    """fused_experts over operands that are dequantised to bfloat16 first: its own fp8 mode would quantise the activations
    anew. Experts of other devices are -1."""
    from sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe import fused_experts_impl

    torch = call.torch
    if call.with_word("output1_scales") is not None:
        raise Unavailable("it has one scale for both halves of the first product")
    only_known_experts(call)
    hidden = scaled_hidden(call)
    w1, w2 = (w.float() if s is None else w.float() * spread(s.float(), w.shape)
              for w, s in ((call[name], call.get(name + "_scale")) for name in ("gemm1_weights", "gemm2_weights")))
    weights, experts = routing(call)
    local, offset = w1.shape[0], int(expert_number(call, "offset", 0))
    experts = experts.long() - offset
    outside = (experts < 0) | (experts >= local)
    with without_server():
        output = fused_experts_impl(
            hidden.to(torch.bfloat16).contiguous(), halves_swapped(w1, w1.shape[1] // 2).to(torch.bfloat16),
            w2.to(torch.bfloat16).contiguous(), weights.float().masked_fill(outside, 0.0).contiguous(),
            experts.masked_fill(outside, -1).to(torch.int32).contiguous(), inplace=False,
            apply_router_weight_on_input=bool(call.variant & 4), filter_expert=True)
    call.noise = 0.01
    return call.cut(output)


# ---- recurrences ----


def gdn(call: Call):
    """One kernel for gates, correction and state; it updates states in place: they are the call's own."""
    from sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent import fused_sigmoid_gating_delta_rule_update

    torch, form = call.torch, GatedDelta(call)
    if form.v_last:
        raise Unavailable("its states are [V, K], the definition's are [K, V]")
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
        b.contiguous(), state, slots.to(torch.int32), scale=form.scale, use_qk_l2norm_in_kernel=form.l2norm,
        cu_seqlens=cu_seqlens.to(torch.int32), disable_state_update=form.indices is not None and not form.updates)
    return form.answer(output.reshape(form.v.shape), state)


def mamba_ssu(call: Call):
    from sglang.kernels.ops.mamba.triton_ops.mamba_ssm import selective_state_update

    torch = call.torch
    parts = ssu_parts(call)
    state, x, indices = parts["state"], parts["x"], parts.get("indices")
    heads, dim, width = state.shape[1:]

    def spread(value, shape):
        if value is None:
            return None
        while value.dim() < len(shape):
            value = value.unsqueeze(-1)
        return value.expand(shape)

    output = torch.zeros_like(x)
    selective_state_update(
        state, x, spread(parts["dt"], x.shape), spread(parts["A"], (heads, dim, width)), parts["B"], parts["C"],
        D=spread(parts.get("D"), (heads, dim)), z=parts.get("z"), dt_bias=spread(parts.get("dt_bias"), (heads, dim)),
        dt_softplus=bool(parts["softplus"]), state_batch_indices=indices, pad_slot_id=int(parts["pad"]), out=output)
    if indices is not None:  # of padding it takes the state for 0 and goes on
        output[indices == int(parts["pad"])] = 0
    return call.cut(output, state)


# ---- compiled kernels ----


def norm(plain_name, fused_name):
    """The fused kernel writes to both of its tensors: they are the call's own."""

    def run(call: Call):
        import sgl_kernel

        by_itself("sgl_kernel.elementwise")
        activations = call.tensors(least_rank=2)
        weight = next(x for x in call.tensors(floating=True) if x.dim() == 1)
        narrow(*activations, weight)
        eps = float(call.constant("eps"))
        flat = [x.contiguous().view(-1, x.shape[-1]) for x in activations]
        if len(flat) == 1:
            return call.cut(of(sgl_kernel, plain_name)(flat[0], weight, eps=eps).view(activations[0].shape))
        of(sgl_kernel, fused_name)(flat[0], flat[1], weight, eps=eps)
        return normed_outputs(call, *(x.view(activations[0].shape) for x in flat))

    return run


def activation(call: Call):
    import sgl_kernel

    (x,) = call.tensors()
    narrow(x)
    kind = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")[call.variant]
    return call.cut(of(sgl_kernel, kind)(x.contiguous()))


def cascade(call: Call):
    """merge_state_v2 has natural logarithms."""
    import sgl_kernel

    v, s, mask = merged_states(call)
    if call.variant == 1 or mask is not None:
        raise Unavailable("it merges two states, without a mask")
    merged, lse = of(sgl_kernel, "merge_state_v2")(v[0], s[0] * LN2, v[1], s[1] * LN2)
    return call.cut(merged, lse / LN2)


def sampling(call: Call):
    from sgl_kernel import sampling as module

    by_itself(module.__name__)
    if not call.variant & 8:
        raise Unavailable("it draws by FlashInfer's kernels")
    probs = next(x for x in call.tensors(floating=True) if x.dim() == 2).float().contiguous()
    words = [word for bit, word in ((1, "top_k"), (2, "top_p"), (4, "min_p")) if call.variant & bit]
    if words not in (["top_k"], ["top_p"]):
        raise Unavailable("it renormalises by top-k or top-p")
    value = filter_parameter(call, words[0])
    if words[0] == "top_k":
        value = kept_by_top_k(value, probs.shape[1])
    return call.cut(of(module, words[0] + "_renorm_probs")(probs, value))


def lse_out(lse, heads):
    """[heads, queries], natural, to [queries, heads] in base 2."""
    return (lse.t() if lse.shape[0] == heads else lse).float() / LN2


def ragged(call: Call):
    flash_attn_varlen_func = flash_attention("flash_attn_varlen_func")
    parts = Attention(call)
    q, k, v = parts.whole()
    narrow(q, k, v)
    queries, keys = (x.to(call.torch.int32) for x in (parts.queries, parts.keys))
    longest = [int((x[1:] - x[:-1]).max()) for x in (queries, keys)]
    output, lse, *_ = flash_attn_varlen_func(
        q, k, v, queries, keys, *longest, softmax_scale=float(parts.scale), causal=is_causal(call),
        return_softmax_lse=True)
    return call.cut(*seen(call, output, lse_out(lse, q.shape[1]), queries, keys[1:] - keys[:-1], is_causal(call)))


def seen(call, output, lse, queries, lengths, causal):
    """Queries that see no key: 0 and -infinity, whatever the kernel leaves there."""
    torch = call.torch
    counts = queries[1:] - queries[:-1]
    sequence = torch.repeat_interleave(torch.arange(len(counts), device=output.device), counts)
    keys = lengths[sequence].long()
    if causal:
        place = torch.arange(len(sequence), device=output.device) - queries[sequence]
        keys = keys - counts[sequence] + place + 1
    blind = (keys <= 0).view(-1, 1)
    return output.masked_fill(blind.unsqueeze(-1), 0), lse.masked_fill(blind, float("-inf"))


def gqa_paged(call: Call):
    flash_attn_with_kvcache = flash_attention("flash_attn_with_kvcache")
    torch = call.torch
    parts = Attention(call)
    q, k, v = parts.whole()
    narrow(q, k, v)
    kv, indices = (x.to(torch.int32) for x in (parts.keys, parts.indices))
    queries, last = parts.queries, parts.last
    causal = queries is not None and is_causal(call)
    if queries is None:
        queries = torch.arange(len(kv), device=call.device)
    queries = queries.to(torch.int32)
    pages = kv[1:] - kv[:-1]
    lengths = pages * k.shape[1]
    if last is not None:
        lengths = torch.where(pages > 0, lengths - k.shape[1] + last[: len(pages)], 0)
    table = torch.zeros(len(pages), max(int(pages.max()), 1), dtype=torch.int32, device=call.device)
    for i, (a, b) in enumerate(zip(kv[:-1].tolist(), kv[1:].tolist())):
        table[i, : b - a] = indices[a:b]
    output, lse, *_ = flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths.to(torch.int32), page_table=table, cu_seqlens_q=queries,
        max_seqlen_q=int((queries[1:] - queries[:-1]).max()), softmax_scale=float(parts.scale), causal=causal,
        return_softmax_lse=True)
    return call.cut(*seen(call, output, lse_out(lse, q.shape[1]), queries, lengths, causal))


TABLES = (
    Table(
        "sglang",
        TRITON,
        {
            "gdn": Row(gdn, mutates="state", coarse=((1e-3, 2e-2), (1e-3, 1e-2))),
            "mamba_ssu": Row(mamba_ssu, mutates="state", coarse=((1e-3, 1e-2), (1e-3, 1e-2))),
            "moe": Row(moe, coarse=((0.0, 2e-2),)),
        },
    ),
    Table(
        "sgl_kernel",
        COMPILED,
        {
            "activation": Row(activation, first_use_s=120, coarse=((1e-3, 2e-2),)),
            "cascade": Row(cascade, first_use_s=120, coarse=((1e-3, 1e-2), (1e-3, 1e-3))),
            "gemma_rmsnorm": Row(norm("gemma_rmsnorm", "gemma_fused_add_rmsnorm"), first_use_s=120,
                                 mutates="input, residual"),
            "gqa_paged": Row(gqa_paged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "gqa_ragged": Row(ragged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "mla_ragged": Row(ragged, least=80, most=90, first_use_s=120, coarse=ATTENTION),
            "rmsnorm": Row(norm("rmsnorm", "fused_add_rmsnorm"), first_use_s=120, mutates="input, residual"),
            "sampling": Row(sampling, first_use_s=120),
        },
    ),
)
