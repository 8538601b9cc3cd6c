# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: a9d659a891cc916b17de32c383747971
# fmt: off
# ruff: noqa
"""flashinfer - computes ground truths with FlashInfer. The tables in this file were written for flashinfer-python
0.7.2.post1.

FlashInfer compiles most of its kernels at their first use (with nvcc and ninja; a minute or more each) and caches them
in ~/.cache/flashinfer. There are several ground truths. Attention: "flashinfer" uses the fa2 kernels, which run on
sm_80 and newer, and "flashinfer_fa3" the kernels written for sm_90. Both kinds of kernels round the attention
probabilities to the dtype of v, so they are less exact than definitions, which compute in float32. Therefore the
comparisons with these kernels are reported but do not decide a verdict alone. Top-k selection: "flashinfer" uses the
kernel that renormalises, "flashinfer_mask" the kernel that masks logits. Mixture of experts: "flashinfer" uses the
kernels of cutlass (sm_90), "flashinfer_trtllm" the kernels of TensorRT-LLM (sm_100)."""

import sys

from reftest_providers import (
    COMPILE_S, Call, GatedDelta, Need, NotBuilt, Row, Table, Unavailable, choose_experts, expert_groups, expert_values,
    filters_of, has_block_scales, hidden_values, int32, interleaved, kept_by_top_k, key_counts, last_page_len, progress_of,
    query_offsets, require_16_bits, require_elements, rows_of, tokens_first)

NEEDS = (
    Need(("flashinfer-python", "flashinfer"), "flashinfer", (0, 3)),
    Need(("flashinfer-cubin",), optional=True),
    Need(("flashinfer-jit-cache",), optional=True),
    Need(("nvidia-cutlass-dsl",), optional=True),
)
WORKSPACE = 256 << 20  # bytes; the workspace of an attention wrapper
# The tolerances (atol, rtol) of attention. They are wide for "output" because the kernels round probabilities to 8 bits
# of mantissa, and for "lse" because the kernels compute powers of 2 with an approximate instruction.
ATTENTION = {"output": (1e-2, 2e-2), "lse": (1e-2, 1e-3)}
# FlashInfer compiles kernels for other pairs of head dimensions too, but these kernels read out of bounds.
HEAD_DIMS = {(64, 64), (128, 128), (256, 256), (192, 128)}


def on_import():
    """Wraps FlashInfer's function that builds a module, so that each build is reported to the pool. FlashInfer calls
    this function even for a module that is up to date; such a call returns at once."""
    spec = getattr(sys.modules.get("flashinfer.jit.core"), "JitSpec", None)
    if spec is not None and not hasattr(spec.build_and_load, "reports"):
        spec.build_and_load = reporting(spec.build_and_load)


def reporting(build):
    """Wraps the function `build`, which builds a module. If another process compiles the same module, the build waits
    for that process. The provider process does not retry a failed build of kernels. The function `mendable` in
    provider.py decides whether a later run tries the build again."""
    failed = {}

    def reported(self, *args, **words):
        try:
            there = bool(self.is_compiled)
        except Exception:  # not an error: `there` only decides whether a progress message is shown
            there = False
        if self.name in failed:
            raise NotBuilt(failed[self.name])
        try:
            with progress_of("flashinfer compiles %s; its first use takes a minute or more" % self.name, COMPILE_S,
                             tell=not there):
                return build(self, *args, **words)
        except Exception as problem:
            failed[self.name] = str(problem)
            raise NotBuilt(failed[self.name]) from problem

    reported.reports = True
    return reported


# ---- attention ----


def workspace(call):
    return call.torch.empty(WORKSPACE, dtype=call.torch.uint8, device=call.device)


def head_dims(q, v):
    pair = (q.shape[-1], v.shape[-1])
    if pair not in HEAD_DIMS:
        raise Unavailable("it has no kernel for head dimensions %d and %d" % pair)


def empty_to_infinity(lse):
    """Replaces large negative numbers in a logsumexp by -infinity, because older kernels return a large negative number
    for a row without visible keys. A logsumexp of +infinity is kept and fails the comparison, because no kernel returns
    +infinity for a row without visible keys."""
    lse = lse.float()
    return lse.masked_fill(lse <= -1e4, float("-inf"))


def whole_heads(call):
    """Returns (q, k, v). Raises Unavailable if FlashInfer has no kernel for the head dimensions of these tensors."""
    q, k, v = (call[role] for role in ("q", "k", "v"))
    require_16_bits(q, k, v)
    head_dims(q, v)
    return q, k, v


def gqa_paged(backend):
    """Computes paged GQA with the prefill wrapper, because prefill supports every group size. A decode case is passed
    as a prefill with one query per sequence."""

    def run(call: Call):
        import flashinfer

        q, k, v = whole_heads(call)
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace(call), "NHD", backend=backend)
        wrapper.plan(int32(query_offsets(call)), int32(call["kv_indptr"]), int32(call["kv_indices"]),
                     int32(last_page_len(call)), q.shape[1], k.shape[2], q.shape[2], k.shape[1], head_dim_vo=v.shape[3],
                     causal=call.is_("causal"), sm_scale=float(call["scale"]), q_data_type=q.dtype, kv_data_type=k.dtype)
        output, lse = wrapper.run(q, (k, v), return_lse=True)
        return call.outputs_of(output=output, lse=empty_to_infinity(lse))

    return run


def gqa_decode_or_prefill(call: Call):
    """Computes decode with the tensor core kernels of the decode wrapper, because its other kernels support few group
    sizes."""
    import flashinfer

    if call.has("qo_indptr"):
        return gqa_paged("fa2")(call)
    q, k, v = whole_heads(call)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace(call), "NHD", use_tensor_cores=True, backend="fa2")
    wrapper.plan(int32(call["kv_indptr"]), int32(call["kv_indices"]), int32(last_page_len(call)), q.shape[1], k.shape[2],
                 q.shape[2], k.shape[1], q_data_type=q.dtype, kv_data_type=k.dtype, sm_scale=float(call["scale"]))
    output, lse = wrapper.run(q, (k, v), return_lse=True)
    return call.outputs_of(output=output, lse=empty_to_infinity(lse))


def ragged(backend):
    def run(call: Call):
        import flashinfer

        q, k, v = whole_heads(call)
        wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace(call), "NHD", backend=backend)
        wrapper.plan(int32(call["qo_indptr"]), int32(call["kv_indptr"]), q.shape[1], k.shape[1], q.shape[2],
                     head_dim_vo=v.shape[2], causal=call.is_("causal"), sm_scale=float(call["scale"]),
                     q_data_type=q.dtype, kv_data_type=k.dtype)
        output, lse = wrapper.run(q, k, v, return_lse=True)
        return call.outputs_of(output=output, lse=empty_to_infinity(lse))

    return run


def mla_run(call, backend, latent, rotary, queries, kv_indptr, indices, lengths):
    """Runs the MLA wrapper. `latent` and `rotary` are the two parts of the cache, each [pages, page size, dim]."""
    from flashinfer.mla import BatchMLAPagedAttentionWrapper

    q_nope, q_pe = call["q"], call["q_pe"]
    require_16_bits(q_nope, latent)
    wrapper = BatchMLAPagedAttentionWrapper(workspace(call), backend=backend)
    wrapper.plan(int32(queries), int32(kv_indptr), int32(indices), int32(lengths), q_nope.shape[1], q_nope.shape[2],
                 q_pe.shape[2], latent.shape[1], call.is_("causal"), float(call["scale"]), q_nope.dtype, latent.dtype)
    output, lse = wrapper.run(q_nope, q_pe, latent, rotary, return_lse=True)
    return call.outputs_of(output=output, lse=empty_to_infinity(lse))


def mla_paged(backend):
    def run(call: Call):
        return mla_run(call, backend, call["k"], call["k_pe"], query_offsets(call), call["kv_indptr"], call["kv_indices"],
                       key_counts(call))

    return run


def dsa_paged(backend):
    """Computes sparse attention with the kernel for latent attention, which gets pages of one key each. Each query is
    passed as a sequence of its own, whose pages are the keys that the query's valid indices select."""

    def run(call: Call):
        torch = call.torch
        if call.is_("indexer"):
            raise Unavailable("its indexer requires the deep_gemm package")
        chosen = call["sparse"]
        require_elements(call["q"])
        valid = chosen >= 0
        lengths = valid.sum(-1)
        kv_indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        flat = [call[role].reshape(-1, 1, call[role].shape[-1]) for role in ("k", "k_pe")]
        queries = torch.arange(len(chosen) + 1, device=chosen.device)
        return mla_run(call, backend, *flat, queries, kv_indptr, chosen[valid], lengths)

    return run


# ---- norms, activations ----


def norm(plain_name, fused_name):
    """The fused kernel writes to both of its input tensors, which are copies that belong to this call."""

    def run(call: Call):
        from flashinfer import norm as module

        hidden, residual, weight = call["hidden"], call.get("residual"), call["weight"]
        eps = float(call.constant("eps"))
        require_16_bits(hidden, weight, *([] if residual is None else [residual]))
        normed, total = rows_of(hidden), None if residual is None else rows_of(residual)
        if total is None:
            return call.outputs_of(output=getattr(module, plain_name)(normed, weight, eps=eps).view(hidden.shape))
        getattr(module, fused_name)(normed, total, weight, eps=eps)
        return call.outputs_of(output=normed.view(hidden.shape), updated=total.view(hidden.shape))

    return run


def layernorm(call: Call):
    from flashinfer import norm as module

    x, weight, bias = call["hidden"], call["weight"], call.get("bias")
    if bias is None or any(str(y.dtype) != "torch.float32" for y in (weight, bias)):
        raise Unavailable("it requires a weight and a bias in float32")
    if str(x.dtype) != "torch.bfloat16":
        raise Unavailable("it requires activations in bfloat16")
    normed = module.layernorm(rows_of(x), weight, bias, eps=float(call.constant("eps")))
    return call.outputs_of(output=normed.view(x.shape))


def activation(call: Call):
    from flashinfer import activation as module

    require_16_bits(call["hidden"])
    run = getattr(module, call.one_of("silu", "gelu", "gelu_tanh") + "_and_mul")
    return call.outputs_of(output=run(call["hidden"].contiguous()))


def quantize_fp8_per_token_group(call: Call):
    from flashinfer import quantization as module

    x = rows_of(call["hidden"])
    require_elements(x)
    group = x.shape[1] // call.output_shape("scale")[-1]
    quantized, scale = module.per_token_group_quant_8bit(x, group, eps=float(call.constant("eps")))
    return call.outputs_of(quantized=quantized.view(call["hidden"].shape), scale=scale.view(call.output_shape("scale")))


# ---- cascade, page, rope ----


def cascade(call: Call):
    from flashinfer import cascade as module

    v, s = call["v"].contiguous(), call["s"].contiguous()
    if call.is_("many"):
        v, s = module.merge_states(v, s)
        return call.outputs_of(v_merged=v, s_merged=s)
    others = call["v_other"].contiguous(), call["s_other"].contiguous()
    if call.has("mask"):
        module.merge_state_in_place(v, s, *others, call["mask"].bool())  # writes to the copies v and s
    else:
        v, s = module.merge_state(v, s, *others)
    return call.outputs_of(v_merged=v, s_merged=s)


def page(call: Call):
    """Appends keys and values to two caches, or to one cache that contains both. The caches are copies that belong to
    this call."""
    from flashinfer import page as module

    added = call["append"], call.get("append_other")
    if added[1] is None:
        raise Unavailable("it appends keys and values only together")
    held = [call[role] for role in ("cache", "cache_other") if call.has(role)]
    tables = [int32(call[role]) for role in ("batch_indices", "positions", "indices", "indptr", "last_page_len")]
    where, pages = tables[:2], tables[2:]
    require_elements(where[0])
    if (where[0] < 0).any():
        raise Unavailable("it looks up the sequence of every token, but padding tokens belong to no sequence")
    if call.is_("latent"):
        module.append_paged_mla_kv_cache(*added, *where, *held, *pages)
    else:
        cache = held[0] if call.is_("combined") else tuple(held)
        module.append_paged_kv_cache(*added, *where, cache, *pages, "HND" if call.is_("hnd") else "NHD")
    return call.outputs_of(output=held[0], output_other=held[-1])


def rope(call: Call):
    from flashinfer import rope as module

    if not call.has("k") or call["q"].dim() != 3:
        raise Unavailable("it requires q and k of shape [tokens, heads, dim]")
    q, k, positions = call["q"].contiguous(), call["k"].contiguous(), call["positions"]
    require_16_bits(q, k)
    if call.has("cos_sin_cache"):
        q_out, k_out = module.apply_rope_with_cos_sin_cache(
            positions, *(x.view(len(x), -1) for x in (q, k)), q.shape[-1], call["cos_sin_cache"].float(),
            is_neox=not interleaved(call))
        return call.outputs_of(q_out=q_out.view(q.shape), k_out=k_out.view(k.shape))
    rotary_dim = call.get("rotary_dim", call.axes.get("rotary_dim"))
    if rotary_dim is not None and not 0 <= rotary_dim <= q.shape[-1]:
        rotary_dim = q.shape[-1]
    words = {"rotary_dim": rotary_dim, "interleave": interleaved(call),
             "rope_theta": float(call.constant("theta", "rope_theta")),
             "rope_scale": float(call.constant("scale", "rope_scale", 1.0))}
    run = module.apply_rope_pos_ids
    if call.is_("llama31"):
        run = module.apply_llama31_rope_pos_ids
        words["low_freq_factor"] = float(call.constant("low_freq", "low_freq_factor"))
        words["high_freq_factor"] = float(call.constant("high_freq", "high_freq_factor"))
        words["old_context_len"] = int(call.constant("old_context", "old_context_len"))
    q_out, k_out = run(q, k, int32(positions), **words)
    return call.outputs_of(q_out=q_out, k_out=k_out)


# ---- sampling ----


def sampling(call: Call):
    """Computes random samples or renormalised probabilities. Only the probabilities are compared with those of the
    reference. Random samples cannot be compared, and the op family judges them without a ground truth."""
    from flashinfer import sampling as module

    probs, filters = call["probs"].float().contiguous(), filters_of(call)
    values = [kept_by_top_k(call) if role == "top_k" else call[role] for role in filters]
    if call.is_("renormalise"):
        if filters == ["top_k", "top_p"]:
            probs = module.top_k_renorm_probs(probs, values[0])
            filters, values = filters[1:], values[1:]
        if filters not in (["top_k"], ["top_p"]):
            raise Unavailable("it renormalises only after top-k or top-p filtering")
        return call.outputs_of(output=getattr(module, filters[0] + "_renorm_probs")(probs, values[0]))
    name = "_".join([*filters, "sampling_from_probs"])
    if not hasattr(module, name):
        raise Unavailable("it has no %s" % name)
    return call.outputs_of(output=getattr(module, name)(probs, *values))


def masked(call: Call):
    """Computes renormalised probabilities with the kernel that masks logits. This kernel is a second implementation of
    top-k selection. The kernel supports only k above 0 and below the vocabulary size. In rows with another k, this
    function keeps all probabilities and does not use the kernel's result. The kernel expects logits, and no op family
    has logits as inputs, so this function passes the logarithms of the probabilities."""
    from flashinfer import sampling as module

    torch = call.torch
    if not call.is_("renormalise") or filters_of(call) != ["top_k"]:
        raise Unavailable("its kernel that masks logits supports only top-k")
    probs, k = call["probs"].float().contiguous(), call["top_k"]
    k = int32(k).expand(len(probs)) if hasattr(k, "dtype") else torch.full((len(probs),), int(k), device=probs.device)
    vocabulary = probs.shape[1]
    filtered = (k > 0) & (k < vocabulary)
    inside = int32(k.clamp(1, max(1, vocabulary - 1))).contiguous()
    kept = module.top_k_mask_logits(probs.log(), top_k=inside) > float("-inf")
    left = torch.where(kept | ~filtered.unsqueeze(1), probs, 0).double()
    return call.outputs_of(output=left / left.sum(-1, keepdim=True))


def softmax(call: Call):
    from flashinfer import sampling as module

    logits = call["logits"]
    probs = module.softmax(rows_of(logits.float()), temperature=call.get("temperature"))
    return call.outputs_of(output=probs.view(logits.shape))


# ---- recurrences ----


def gdn(call: Call):
    """Computes the gated delta net with states [V, K] in float32. The kernels for decode and for several tokens update
    the states in place; these states are copies that belong to this call."""
    torch, form = call.torch, GatedDelta(call)
    require_elements(form.q)
    if form.v_last:
        raise Unavailable("its states are [V, K], but the definition's are [K, V]")
    q, k, v, a, b, cu_seqlens = form.q, form.k, form.v, form.a, form.b, form.cu_seqlens
    require_16_bits(q, k, v)
    if cu_seqlens is not None:
        if form.indices is not None:
            raise Unavailable("its prefill kernels require one state per sequence, not a pool")
        from flashinfer import gdn_prefill

        if getattr(gdn_prefill, "chunk_gated_delta_rule_sm90", True) is None:
            raise Unavailable("cannot import its prefill kernels: they require cutlass (nvidia-cutlass-dsl[cu13])")
        chunk_gated_delta_rule = gdn_prefill.chunk_gated_delta_rule
        gate = torch.exp(-torch.exp(form.a_log.float()) * torch.nn.functional.softplus(a.float() + form.dt_bias.float()))
        beta = torch.sigmoid(b.float())
        before = form.zero_state() if form.state is None else form.state.float()
        output, new_state = chunk_gated_delta_rule(
            q, k, v, gate.contiguous(), beta.contiguous(), form.scale, None if form.state is None else before, True,
            cu_seqlens, use_qk_l2norm_in_kernel=form.l2norm, output_state=torch.full_like(before, float("nan")))
        empty = (cu_seqlens[1:] == cu_seqlens[:-1]).view(-1, 1, 1, 1)  # for empty sequences, the kernel writes no state
        new_state = torch.where(empty, before, new_state)
        call.noise = 0.01  # the kernel rounds factors before tensor cores multiply them
        return call.outputs_of(output=output, new_state=new_state)
    from flashinfer import gdn_decode as module

    needed = "run_pretranspose_decode" if q.shape[1] == 1 else "run_mtp_decode"
    if getattr(module, needed, True) is None:
        raise Unavailable("cannot import its decode kernels: they require cutlass (nvidia-cutlass-dsl[cu13])")
    gates = (form.a_log.float(), a, form.dt_bias.float(), b)
    words = {"scale": form.scale, "use_qk_l2norm": form.l2norm}
    if q.shape[1] == 1 and form.indices is None:
        state = form.zero_state() if form.state is None else form.state
        output, new_state = module.gated_delta_rule_decode_pretranspose(q, k, v, state, *gates, **words)
        return call.outputs_of(output=output, new_state=new_state)
    if form.indices is None or q.shape[1] < 2:
        raise Unavailable("its multi-token kernel requires a pool of states, indices, and at least two tokens")
    buffer = torch.empty(q.shape[0], q.shape[1], v.shape[2], v.shape[3], q.shape[3], device=q.device)
    output, new_state = module.gated_delta_rule_mtp(
        q, k, v, form.state, int32(form.indices), *gates, intermediate_states_buffer=buffer,
        disable_state_update=not form.updates, **words)
    return call.outputs_of(output=output, new_state=new_state)


def mamba_ssu(call: Call):
    """Computes the Mamba state update. The kernel requires dt, A, D and dt_bias to have one number per head, expanded
    to the full shape with strides of 0. If one of these inputs has a number for each element, the numbers of a head
    must be equal."""
    from flashinfer.mamba import selective_state_update

    state, x, dt, a = (call[role] for role in ("state", "x", "dt", "a"))
    indices, skip, bias = (call.get(role) for role in ("indices", "d", "dt_bias"))
    pad = int(call.get("pad", -1))
    heads, dim, width = state.shape[1:]
    require_elements(x)
    if dim < 64:
        raise Unavailable("its kernel requires a head dimension of at least 64, but the head dimension is %d" % dim)

    # The kernel requires the same dtype for dt, D and dt_bias.
    given = [y for y in (dt, skip, bias) if y is not None]
    wide = dt.dtype if all(y.dtype == dt.dtype for y in given) else call.torch.float32

    def by_head(value, leading, trailing, dtype):
        """Returns a view of `value` with the shape [..., heads, dim, width], [..., heads, dim] or [..., heads]. The
        strides of the axes after `heads` are 0."""
        if value is None:
            return None
        while value.dim() < leading + 1 + trailing:
            value = value.unsqueeze(-1)
        first = value
        for axis in range(leading + 1, leading + 1 + trailing):
            first = first.narrow(axis, 0, 1)
        if not (value == first).all():
            raise Unavailable("it requires that dt, A, D and dt_bias have one value per head, but here the values "
                              "within a head differ")
        first = first.reshape(first.shape[: leading + 1]).to(dtype)
        shape = (*first.shape, *(dim, width)[:trailing])
        for _ in range(trailing):
            first = first.unsqueeze(-1)
        return first.expand(shape)

    skip = call.torch.zeros(heads, device=x.device) if skip is None else skip  # D is required
    output = selective_state_update(
        state, x, by_head(dt, 1, 1, wide), by_head(a, 0, 2, a.dtype), call["b"], call["c"], by_head(skip, 0, 1, wide),
        z=call.get("z"), dt_bias=by_head(bias, 0, 1, wide), dt_softplus=bool(call.get("softplus", True)),
        state_batch_indices=indices, pad_slot_id=pad)
    if indices is not None:
        output = call.torch.where((indices == pad).view(-1, 1, 1), 0, output)
    return call.outputs_of(output=output, new_state=state)


# ---- experts ----


def deepseek_kernel(groups, kept, count, experts):
    """Does fused_topk_deepseek support the case? Without groups of experts, fused_topk_deepseek supports only one
    expert per token."""
    if count > 8 or kept > groups or groups * kept < count:
        return False
    return experts <= 384 if groups == 1 else experts <= 32 * groups and experts * kept <= 128 * groups


def routing(call):
    """Chooses the experts and returns (weights [T, K], experts [T, K]). If the definition chooses experts as DeepSeek
    does, and fused_topk_deepseek supports the case, the library chooses the experts. Otherwise choose_experts does."""
    torch = call.torch
    if not call.is_("deepseek"):
        return choose_experts(call)
    logits, count = call["logits"], int(call.constant("top_k"))
    groups, kept = expert_groups(call)
    if not deepseek_kernel(groups, kept, count, logits.shape[1]):
        return choose_experts(call)
    from flashinfer.fused_moe import fused_topk_deepseek

    values = torch.empty(len(logits), count, dtype=torch.float32, device=logits.device)
    experts = torch.empty(len(logits), count, dtype=torch.int32, device=logits.device)
    fused_topk_deepseek(logits.float().contiguous(), call["bias"].float().contiguous(), groups, kept, count,
                        float(call.get("scaling", 1.0)), values, experts)
    return values, experts


def of_this_device(call, weights, experts):
    """Returns expert numbers that count from 0 on this device, and the weights in float32. An expert of another device
    is replaced by expert 0 with weight 0."""
    torch = call.torch
    local = experts.long() - int(call.get("offset", 0))
    here = (local >= 0) & (local < len(call["weights1"]))
    return torch.where(here, weights.float(), 0.0).contiguous(), int32(torch.where(here, local, 0)).contiguous()


def moe(call: Call):
    """Computes the experts with cutlass_fused_moe. If the weights have scales for blocks of 128 by 128, the kernel's
    fp8 block-scale mode is used. In this mode the kernel quantises activations and intermediate values, with one scale
    for 128 channels of a token. The quantisation error is 2.6 % of a value. Weights without block scales are passed in
    bfloat16. The kernel expects the linear half of the first weight before the half of the gate, as definitions do."""
    from flashinfer.fused_moe import cutlass_fused_moe

    torch = call.torch
    require_elements(call["hidden"])
    if call.is_("weights_on_input"):
        raise Unavailable("it applies the routing weights to the output, but the definition applies them to the input")
    weights, experts = of_this_device(call, *routing(call))
    scaled = has_block_scales(call)
    operands = [call["weights1"], call["weights2"]] if scaled else [w.to(torch.bfloat16) for w in expert_values(call)]
    output = cutlass_fused_moe(
        hidden_values(call).to(torch.bfloat16).contiguous(), experts, weights, *(w.contiguous() for w in operands),
        torch.bfloat16,
        quant_scales=[call[role].float().contiguous() for role in ("scale1", "scale2")] if scaled else None,
        use_deepseek_fp8_block_scale=scaled, use_fused_finalize=False)
    call.noise = 0.1 if scaled else 0.01
    return call.outputs_of(output=output[0] if isinstance(output, (list, tuple)) else output)


ROUTING_METHODS = {"renormalise": 1, "deepseek": 2}  # flashinfer.fused_moe.RoutingMethodType


def moe_trtllm(call: Call):
    """Computes the experts with TensorRT-LLM's kernel, which also chooses them. The kernel quantises intermediate
    values as cutlass's kernel does, and expects the scales of hidden states as [blocks, T]."""
    from flashinfer.fused_moe import trtllm_fp8_block_scale_moe

    require_elements(call["hidden"])
    if not has_block_scales(call):
        raise Unavailable("it requires hidden states with scales, and weights with one scale for each block of 128 by "
                          "128")
    if call.is_("weights_on_input"):
        raise Unavailable("it applies the routing weights to the output, but the definition applies them to the input")
    method = ROUTING_METHODS[call.one_of(*ROUTING_METHODS)]
    groups, kept = expert_groups(call)
    scaling = call.get("scaling")
    output = trtllm_fp8_block_scale_moe(
        call["logits"], call.get("bias"), call["hidden"], tokens_first(call).t().contiguous(), call["weights1"],
        call["scale1"], call["weights2"], call["scale2"], num_experts=call["logits"].shape[1],
        top_k=int(call.constant("top_k")), n_group=groups if groups > 1 else None,
        topk_group=kept if groups > 1 else None, intermediate_size=call["weights2"].shape[2],
        local_expert_offset=int(call.get("offset", 0)), local_num_experts=len(call["weights1"]),
        routed_scaling_factor=None if scaling is None else float(scaling), routing_method_type=method,
        use_shuffled_weight=False)
    call.noise = 0.1
    return call.outputs_of(output=output[0] if isinstance(output, (list, tuple)) else output)


SHORT = 120  # extra seconds for the first launch of a module, in addition to the time for its compilation
ROTATED = (3e-3, 1e-2)

TABLES = (
    Table(
        "flashinfer",
        NEEDS,
        {
            "activation": Row(activation, first_use_s=SHORT, coarse={"output": (1e-3, 2e-2)}),
            "cascade": Row(cascade, first_use_s=SHORT, mutates="v, s"),
            "dsa_paged": Row(dsa_paged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "gdn": Row(gdn, least=90, mutates="state", coarse={"output": (1e-3, 2e-2), "new_state": (1e-3, 1e-2)}),
            "gemma_rmsnorm": Row(norm("gemma_rmsnorm", "gemma_fused_add_rmsnorm"), first_use_s=SHORT,
                                 mutates="hidden, residual"),
            "gqa_paged": Row(gqa_decode_or_prefill, first_use_s=SHORT, coarse=ATTENTION),
            "gqa_ragged": Row(ragged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "layernorm": Row(layernorm, first_use_s=SHORT),
            "mamba_ssu": Row(mamba_ssu, mutates="state", coarse={"output": (1e-3, 1e-2), "new_state": (1e-3, 1e-2)}),
            "mla_paged": Row(mla_paged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "mla_ragged": Row(ragged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "moe": Row(moe, least=90, most=90, coarse={"output": (0.0, 2e-2)}),
            "page": Row(page, first_use_s=SHORT, mutates="cache, cache_other"),
            "quantize_fp8_per_token_group": Row(quantize_fp8_per_token_group, on_request=True),
            "rmsnorm": Row(norm("rmsnorm", "fused_add_rmsnorm"), first_use_s=SHORT, mutates="hidden, residual"),
            "rope": Row(rope, first_use_s=SHORT, coarse={"q_out": ROTATED, "k_out": ROTATED}),
            "sampling": Row(sampling, first_use_s=SHORT),
            "softmax": Row(softmax, first_use_s=SHORT),
        },
        never={"gemm": "its dense products use cuBLAS for bfloat16, as torch does, so they are not independent of "
                       "torch"},
    ),
    Table(
        "flashinfer_fa3",
        NEEDS,
        {
            "dsa_paged": Row(dsa_paged("fa3"), least=90, most=90, first_use_s=SHORT, coarse=ATTENTION),
            "gqa_paged": Row(gqa_paged("fa3"), least=90, most=90, first_use_s=SHORT, coarse=ATTENTION),
            "gqa_ragged": Row(ragged("fa3"), least=90, most=90, first_use_s=SHORT, coarse=ATTENTION),
            "mla_paged": Row(mla_paged("fa3"), least=90, most=90, first_use_s=SHORT, coarse=ATTENTION),
            "mla_ragged": Row(ragged("fa3"), least=90, most=90, first_use_s=SHORT, coarse=ATTENTION),
        },
    ),
    Table("flashinfer_mask", NEEDS, {"sampling": Row(masked, first_use_s=SHORT)}),
    Table(
        "flashinfer_trtllm",
        NEEDS,
        {"moe": Row(moe_trtllm, least=100, most=109, coarse={"output": (0.0, 2e-2)}, on_request=True)},
    ),
)
