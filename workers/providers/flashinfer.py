"""FlashInfer as a ground truth. Read against flashinfer-python 0.7.2.post1.

Most of it compiles its kernels when they are first used (nvcc and ninja; a minute or more each) and keeps them in
~/.cache/flashinfer. Attention is here twice: "flashinfer" asks for the fa2 kernels, which run everywhere from sm_80 on, and
"flashinfer_fa3" for those written for sm_90. Both keep probabilities in the values' dtype on the way, and so are coarser
than the definitions, which are in float32: what they say is heard, and does not decide alone. What a top-k keeps is told by
two kernels: "flashinfer" has the one that renormalises, "flashinfer_mask" the one that masks logits."""

import sys

from reftest_parts import (
    Attention, GatedDelta, choose_as_deepseek, empty_to_infinity, expert_number, filter_parameter, is_causal,
    kept_by_top_k, merged_states, normed_outputs, only_known_experts, scaled_hidden, ssu_parts)
from reftest_providers import COMPILE_S, Call, Need, NotBuilt, Row, Table, Unavailable, progress_of

NEEDS = (
    Need(("flashinfer-python", "flashinfer"), "flashinfer", (0, 3)),
    Need(("flashinfer-cubin",), optional=True),
    Need(("flashinfer-jit-cache",), optional=True),
    Need(("nvidia-cutlass-dsl",), optional=True),
)
WORKSPACE = 256 << 20  # bytes that an attention wrapper plans in
ATTENTION = ((1e-2, 2e-2), (1e-2, 1e-3))  # output: P in 8 bits of mantissa, averaged; lse: sums of exp2.approx
HEAD_DIMS = {(64, 64), (128, 128), (256, 256), (192, 128)}  # that prefill kernels are instantiated for


def on_import():
    """Every build of a module is told, and is not the case's time. A build of what is there already takes moments."""
    spec = getattr(sys.modules.get("flashinfer.jit.core"), "JitSpec", None)
    if spec is not None and not hasattr(spec.build_and_load, "told"):
        spec.build_and_load = telling(spec.build_and_load)


def telling(build):
    """Another process may be compiling the same module: then this one waits for it, inside. What did not compile once is
    not tried again by this process; whether by the next one, provider.py's `mendable` says."""
    failed = {}

    def told(self, *args, **words):
        try:
            there = bool(self.is_compiled)
        except Exception:  # only a nicety hangs on it
            there = False
        if self.name in failed:
            raise NotBuilt(failed[self.name])
        try:
            with progress_of("flashinfer compiles %s; the first use of it takes a minute or more" % self.name, COMPILE_S,
                             tell=not there):
                return build(self, *args, **words)
        except Exception as problem:
            failed[self.name] = str(problem)
            raise NotBuilt(failed[self.name]) from problem

    told.told = True
    return told


def int32(x):
    import torch

    return x.to(torch.int32)


# ---- attention ----


def workspace(call):
    return call.torch.empty(WORKSPACE, dtype=call.torch.uint8, device=call.device)


def narrow(*tensors):
    if any(str(x.dtype) not in ("torch.bfloat16", "torch.float16") for x in tensors):
        raise Unavailable("it takes float16 and bfloat16")


def head_dims(q, v):
    pair = (q.shape[-1], v.shape[-1])
    if pair not in HEAD_DIMS:
        raise Unavailable("it has no kernel for head dimensions %d and %d" % pair)


def last_page_len(parts, page):
    """As many as there are sequences, whatever the definition declares; 0 of one without pages, whose length would be that
    of its last page otherwise."""
    pages = parts.keys[1:] - parts.keys[:-1]
    return int32(parts.call.torch.where(pages > 0, page if parts.last is None else parts.last[: len(pages)], 0))


def gqa_paged(backend):
    def run(call: Call):
        import flashinfer

        parts = Attention(call)
        q, k, v = parts.whole()
        narrow(q, k, v)
        head_dims(q, v)
        page, queries = k.shape[1], parts.queries
        causal = queries is not None and is_causal(call)
        if queries is None:  # decode is prefill with one query a sequence; so every group size has a kernel
            queries = call.torch.arange(len(parts.keys), device=call.device)
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace(call), "NHD", backend=backend)
        wrapper.plan(int32(queries), int32(parts.keys), int32(parts.indices), last_page_len(parts, page), q.shape[1],
                     k.shape[2], q.shape[2], page, head_dim_vo=v.shape[3], causal=causal, sm_scale=float(parts.scale),
                     q_data_type=q.dtype, kv_data_type=k.dtype)
        output, lse = wrapper.run(q, (k, v), return_lse=True)
        return call.cut(output, empty_to_infinity(lse))

    return run


def gqa_decode_or_prefill(call: Call):
    """Decode by the decode wrapper, on tensor cores: the kernels without them know few group sizes."""
    import flashinfer

    parts = Attention(call)
    if parts.queries is not None:
        return gqa_paged("fa2")(call)
    q, k, v = parts.whole()
    narrow(q, k, v)
    head_dims(q, v)
    page = k.shape[1]
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace(call), "NHD", use_tensor_cores=True, backend="fa2")
    wrapper.plan(int32(parts.keys), int32(parts.indices), last_page_len(parts, page), q.shape[1], k.shape[2], q.shape[2],
                 page, q_data_type=q.dtype, kv_data_type=k.dtype, sm_scale=float(parts.scale))
    output, lse = wrapper.run(q, (k, v), return_lse=True)
    return call.cut(output, empty_to_infinity(lse))


def ragged(backend):
    def run(call: Call):
        import flashinfer

        parts = Attention(call)
        q, k, v = parts.whole()
        narrow(q, k, v)
        head_dims(q, v)
        wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace(call), "NHD", backend=backend)
        wrapper.plan(int32(parts.queries), int32(parts.keys), q.shape[1], k.shape[1], q.shape[2], head_dim_vo=v.shape[2],
                     causal=is_causal(call), sm_scale=float(parts.scale), q_data_type=q.dtype, kv_data_type=k.dtype)
        output, lse = wrapper.run(q, k, v, return_lse=True)
        return call.cut(output, empty_to_infinity(lse))

    return run


def mla_run(parts, backend, q_nope, q_pe, ckv, kpe, queries, kv_indptr, indices, lengths, causal):
    from flashinfer.mla import BatchMLAPagedAttentionWrapper

    narrow(q_nope, ckv)
    wrapper = BatchMLAPagedAttentionWrapper(workspace(parts.call), backend=backend)
    wrapper.plan(int32(queries), int32(kv_indptr), int32(indices), int32(lengths), q_nope.shape[1], q_nope.shape[2],
                 q_pe.shape[2], ckv.shape[1], causal, float(parts.scale), q_nope.dtype, ckv.dtype)
    output, lse = wrapper.run(q_nope, q_pe, ckv, kpe, return_lse=True)
    return parts.call.cut(output, empty_to_infinity(lse))


def mla_paged(backend):
    def run(call: Call):
        torch = call.torch
        parts = Attention(call)
        tensors = parts.latent()
        size = tensors[2].shape[1]
        pages = parts.keys[1:] - parts.keys[:-1]
        lengths = torch.where(pages > 0, (pages - 1) * size + last_page_len(parts, size), 0)
        queries = parts.queries
        causal = queries is not None and is_causal(call)
        if queries is None:
            queries = torch.arange(len(parts.keys), device=call.device)
        return mla_run(parts, backend, *tensors, queries, parts.keys, parts.indices, lengths, causal)

    return run


def dsa_paged(backend):
    """Sparse attention as latent attention over pages of one key: one sequence a query, its valid indices for pages. The
    indexer (variant 1) has no kernel that would run here without deep_gemm."""

    def run(call: Call):
        torch = call.torch
        if call.variant != 0:
            raise Unavailable("its indexer needs the deep_gemm package")
        parts = Attention(call)
        q_nope, q_pe, ckv, kpe = parts.latent()
        (chosen,) = call.tensors(floating=False)
        valid = chosen >= 0
        lengths = valid.sum(-1)
        kv_indptr = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        flat = [x.reshape(-1, 1, x.shape[-1]) for x in (ckv, kpe)]
        queries = torch.arange(len(chosen) + 1, device=call.device)
        return mla_run(parts, backend, q_nope, q_pe, *flat, queries, kv_indptr, chosen[valid], lengths, False)

    return run


# ---- norms, activations ----


def norm(plain_name, fused_name):
    """Activations of any rank; a residual has the activations' shape. The fused kernel writes to both of its tensors: they
    are the call's own."""

    def run(call: Call):
        from flashinfer import norm as module

        activations = [x for x in call.tensors(least_rank=2)]
        weight = next(x for x in call.tensors(floating=True) if x.dim() == 1)
        eps = float(call.constant("eps"))
        narrow(*activations, weight)
        flat = [x.contiguous().view(-1, x.shape[-1]) for x in activations]
        if len(flat) == 1:
            return call.cut(getattr(module, plain_name)(flat[0], weight, eps=eps).view(activations[0].shape))
        getattr(module, fused_name)(flat[0], flat[1], weight, eps=eps)
        return normed_outputs(call, *(x.view(activations[0].shape) for x in flat))

    return run


def layernorm(call: Call):
    from flashinfer import norm as module

    (x,) = call.tensors(least_rank=2)
    names = [name for name, y in call.inputs.items() if isinstance(y, call.torch.Tensor) and y.dim() == 1]
    if "bias" in names[0] or "beta" in names[0]:  # the second is the bias otherwise: kernels/layernorm/inputs.h
        names.reverse()
    if len(names) != 2 or any(str(call[name].dtype) != "torch.float32" for name in names):
        raise Unavailable("it takes a weight and a bias of float32")
    if str(x.dtype) != "torch.bfloat16":
        raise Unavailable("it takes activations of bfloat16")
    flat = x.contiguous().view(-1, x.shape[-1])
    return call.cut(module.layernorm(flat, *(call[name] for name in names), eps=float(call.constant("eps"))).view(x.shape))


def activation(call: Call):
    from flashinfer import activation as module

    (x,) = call.tensors()
    narrow(x)
    kind = ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")[call.variant]
    return call.cut(getattr(module, kind)(x.contiguous()))


# ---- cascade, page, rope ----


def cascade(call: Call):
    from flashinfer import cascade as module

    v, s, mask = merged_states(call)
    if call.variant == 1:
        return call.cut(*module.merge_states(v[0], s[0]))
    if mask is None:
        return call.cut(*module.merge_state(v[0], s[0], v[1], s[1]))
    module.merge_state_in_place(v[0], s[0], v[1], s[1], mask)  # writes to the first two: the call's own
    return call.cut(v[0], s[0])


def page(call: Call):
    """Both caches, or the one that holds both, are written to and are the call's own."""
    from flashinfer import page as module

    names = [name for name in call.inputs if "cache" in name]
    caches = [call[name] for name in names]
    added = [x for name, x in call.inputs.items() if "append" in name]
    tables = [int32(call[name]) for name in ("batch_indices", "positions", "kv_indices", "kv_indptr")]
    if (tables[0] < 0).any():
        raise Unavailable("it would look up the sequence of a token that is padding")
    where, pages = tables[:2], tables[2:]
    last = int32(call["kv_last_page_len"])
    if len(added) != 2:
        raise Unavailable("it appends keys and values together")
    if added[0].dim() == 2:
        module.append_paged_mla_kv_cache(*added, *where, *caches, *pages, last)
    else:
        layout = "HND" if call.variant & 1 else "NHD"
        held = caches[0] if len(caches) == 1 else tuple(caches)
        module.append_paged_kv_cache(*added, *where, held, *pages, last, layout)
    # Outputs go by the caches' names where they have them, by their places otherwise.
    return call.cut(*(call[name] if name in names else cache for name, cache in zip(call.outputs, caches)))


ROPE_WORDS = {"rope_theta": "theta", "rope_scale": "scale", "low_freq_factor": "low_freq", "high_freq_factor": "high_freq",
              "old_context_len": "old_context"}  # in the names of scalars: kernels/rope/inputs.h


def rope_number(call, name, otherwise=None):
    value = call.scalar(ROPE_WORDS[name], call.constants.get(name, otherwise))
    if value is None:
        raise Unavailable("no '%s' is known" % name)
    return float(value)


def rope(call: Call):
    from flashinfer import rope as module

    positions = next(name for name, x in call.inputs.items() if isinstance(x, call.torch.Tensor) and not x.is_floating_point())
    floats = [name for name, x in call.inputs.items() if isinstance(x, call.torch.Tensor) and x.is_floating_point()]
    rotated = [name for name in floats if call[name].dim() > 1 and "cache" not in name
               and call.axes_of[name][0] == call.axes_of[positions][0]]  # as kernels/rope/inputs.h has it
    cache = next((call[name] for name in floats if name not in rotated), None)
    positions, rotated = call[positions], [call[name].contiguous() for name in rotated]
    interleaved = bool(call.scalar("interleave", False)) if call.scalar("interleave") is not None else bool(
        call.variant & 2)
    if call.scalar("neox") is not None:
        interleaved = not call.scalar("neox")
    if len(rotated) != 2 or rotated[0].dim() != 3:
        raise Unavailable("it takes q and k of [tokens, heads, dim]")
    q, k = rotated
    narrow(q, k)
    if cache is not None:
        flat = [x.view(len(x), -1) for x in rotated]
        q_out, k_out = module.apply_rope_with_cos_sin_cache(
            positions, *flat, q.shape[-1], cache.float(), is_neox=not interleaved)
        return call.cut(q_out.view(q.shape), k_out.view(k.shape))
    rotary_dim = call.scalar("rotary_dim", call.axes.get("rotary_dim"))
    if rotary_dim is not None and not 0 <= rotary_dim <= q.shape[-1]:
        rotary_dim = q.shape[-1]
    words = {"rotary_dim": rotary_dim, "interleave": interleaved, "rope_theta": rope_number(call, "rope_theta"),
             "rope_scale": rope_number(call, "rope_scale", 1.0)}
    if call.variant & 4:
        words["low_freq_factor"] = rope_number(call, "low_freq_factor")
        words["high_freq_factor"] = rope_number(call, "high_freq_factor")
        words["old_context_len"] = int(rope_number(call, "old_context_len"))
        return call.cut(*module.apply_llama31_rope_pos_ids(q, k, int32(positions), **words))
    return call.cut(*module.apply_rope_pos_ids(q, k, int32(positions), **words))


# ---- sampling ----

TOP_K, TOP_P, MIN_P, RENORM = 1, 2, 4, 8


def sampling(call: Call):
    """Samples are judged by the family, as the reference's are; renormalised probabilities are compared."""
    from flashinfer import sampling as module

    probs = next(x for x in call.tensors(floating=True) if x.dim() == 2).float().contiguous()
    filters = [(bit, word) for bit, word in ((TOP_K, "top_k"), (TOP_P, "top_p"), (MIN_P, "min_p")) if call.variant & bit]
    values = [filter_parameter(call, word) for _, word in filters]
    words = [word for _, word in filters]
    values = [kept_by_top_k(x, probs.shape[1]) if word == "top_k" else x for x, word in zip(values, words)]
    if call.variant & RENORM:
        if len(words) == 2 and words == ["top_k", "top_p"]:
            probs = module.top_k_renorm_probs(probs, values[0])
            words, values = words[1:], values[1:]
        if words not in (["top_k"], ["top_p"]):
            raise Unavailable("it renormalises by top-k and top-p")
        return call.cut(getattr(module, words[0] + "_renorm_probs")(probs, values[0]))
    name = "_".join([*words, "sampling_from_probs"])
    if not hasattr(module, name):
        raise Unavailable("it has no %s" % name)
    return call.cut(getattr(module, name)(probs, *values))


def masked(call: Call):
    """Renormalised probabilities by the kernel that masks logits: one more way to choose what a top-k keeps. It takes k above
    0 and below the vocabulary; rows that keep all are none of its business. Definitions over logits, which it is made for, no
    op family has."""
    from flashinfer import sampling as module

    torch = call.torch
    if call.variant != TOP_K | RENORM:
        raise Unavailable("it masks what a top-k drops, and renormalises nothing else")
    probs = next(x for x in call.tensors(floating=True) if x.dim() == 2).float().contiguous()
    k = filter_parameter(call, "top_k")
    k = int32(k).expand(len(probs)) if hasattr(k, "dtype") else torch.full((len(probs),), int(k), device=probs.device)
    vocabulary = probs.shape[1]
    filtered = (k > 0) & (k < vocabulary)
    inside = int32(k.clamp(1, max(1, vocabulary - 1))).contiguous()
    kept = module.top_k_mask_logits(probs.log(), top_k=inside) > float("-inf")
    left = torch.where(kept | ~filtered.unsqueeze(1), probs, 0).double()
    return call.cut(left / left.sum(-1, keepdim=True))


def softmax(call: Call):
    from flashinfer import sampling as module

    (output,) = call.outputs.values()
    (logits,) = call.tensors(least_rank=len(output["shape"]))
    temperature = next((x for x in call.inputs.values() if x is not logits), None)
    rows = logits.float().contiguous().view(-1, logits.shape[-1])
    return call.cut(module.softmax(rows, temperature=temperature).view(logits.shape))


# ---- recurrences ----


def gdn(call: Call):
    """States [V, K], float32. Decode and multi-token update states in place: they are the call's own."""
    torch, form = call.torch, GatedDelta(call)
    if form.v_last:
        raise Unavailable("its states are [V, K], the definition's are [K, V]")
    q, k, v, a, b, cu_seqlens = form.q, form.k, form.v, form.a, form.b, form.cu_seqlens
    narrow(q, k, v)
    if cu_seqlens is not None:
        if form.indices is not None:
            raise Unavailable("its prefill kernels take a state of each sequence, and no pool")
        from flashinfer import gdn_prefill

        if getattr(gdn_prefill, "chunk_gated_delta_rule_sm90", True) is None:
            raise Unavailable("its prefill kernels cannot be imported: they need cutlass (nvidia-cutlass-dsl[cu13])")
        chunk_gated_delta_rule = gdn_prefill.chunk_gated_delta_rule
        gate = torch.exp(-torch.exp(form.a_log.float()) * torch.nn.functional.softplus(a.float() + form.dt_bias.float()))
        beta = torch.sigmoid(b.float())
        before = form.zero_state() if form.state is None else form.state.float()
        output, new_state = chunk_gated_delta_rule(
            q, k, v, gate.contiguous(), beta.contiguous(), form.scale, None if form.state is None else before, True,
            cu_seqlens, use_qk_l2norm_in_kernel=form.l2norm, output_state=torch.full_like(before, float("nan")))
        empty = (cu_seqlens[1:] == cu_seqlens[:-1]).view(-1, 1, 1, 1)  # of whose states it writes none
        new_state = torch.where(empty, before, new_state)
        call.noise = 0.01  # products of rounded factors, chunk by chunk
        return form.answer(output, new_state)
    from flashinfer import gdn_decode as module

    needed = "run_pretranspose_decode" if q.shape[1] == 1 else "run_mtp_decode"
    if getattr(module, needed, True) is None:
        raise Unavailable("its decode kernels cannot be imported: they need cutlass (nvidia-cutlass-dsl[cu13])")
    gates = (form.a_log.float(), a, form.dt_bias.float(), b)
    words = {"scale": form.scale, "use_qk_l2norm": form.l2norm}
    if q.shape[1] == 1 and form.indices is None:
        state = form.zero_state() if form.state is None else form.state
        return form.answer(*module.gated_delta_rule_decode_pretranspose(q, k, v, state, *gates, **words))
    if form.indices is None or q.shape[1] < 2:
        raise Unavailable("its multi-token kernel takes a pool of states, indices, and two tokens or more")
    buffer = torch.empty(q.shape[0], q.shape[1], v.shape[2], v.shape[3], q.shape[3], device=q.device)
    return form.answer(*module.gated_delta_rule_mtp(
        q, k, v, form.state, int32(form.indices), *gates, intermediate_states_buffer=buffer,
        disable_state_update=not form.updates, **words))


def mamba_ssu(call: Call):
    """One number a head, spread by strides of 0, is what the kernel takes for dt, A, D and dt_bias; full tensors are taken
    if all numbers of a head are equal."""
    from flashinfer.mamba import selective_state_update

    parts = ssu_parts(call)
    state, x, dt, a = (parts[part] for part in ("state", "x", "dt", "A"))
    indices, skip, bias = (parts.get(part) for part in ("indices", "D", "dt_bias"))
    heads, dim, width = state.shape[1:]
    if dim < 64:
        raise Unavailable("its kernel takes heads of 64 and more, this one has %d" % dim)

    # dt, D and dt_bias have one dtype between them.
    given = [y for y in (dt, skip, bias) if y is not None]
    wide = dt.dtype if all(y.dtype == dt.dtype for y in given) else call.torch.float32

    def by_head(value, leading, trailing, dtype):
        """[…leading, heads, (dim, (width))] as a view whose trailing strides are 0."""
        if value is None:
            return None
        while value.dim() < leading + 1 + trailing:
            value = value.unsqueeze(-1)
        first = value
        for axis in range(leading + 1, leading + 1 + trailing):
            first = first.narrow(axis, 0, 1)
        if not (value == first).all():
            raise Unavailable("it takes one number a head for dt, A, D and dt_bias, and here they differ")
        first = first.reshape(first.shape[: leading + 1]).to(dtype)
        shape = (*first.shape, *(dim, width)[:trailing])
        for _ in range(trailing):
            first = first.unsqueeze(-1)
        return first.expand(shape)

    skip = call.torch.zeros(heads, device=x.device) if skip is None else skip  # which it takes for given
    output = selective_state_update(
        state, x, by_head(dt, 1, 1, wide), by_head(a, 0, 2, a.dtype), parts["B"], parts["C"], by_head(skip, 0, 1, wide),
        z=parts.get("z"), dt_bias=by_head(bias, 0, 1, wide), dt_softplus=bool(parts["softplus"]),
        state_batch_indices=indices, pad_slot_id=int(parts["pad"]))
    if indices is not None:
        output = call.torch.where((indices == int(parts["pad"])).view(-1, 1, 1), 0, output)
    return call.cut(output, state)


# ---- experts ----

GIVEN, DEEPSEEK, RENORMALISE, LLAMA4 = 0, 1, 2, 3


def deepseek_kernel(groups, kept, count, experts):
    """What fused_topk_deepseek takes: without groups it refuses more than one expert a token."""
    if count > 8 or kept > groups or groups * kept < count:
        return False
    return experts <= 384 if groups == 1 else experts <= 32 * groups and experts * kept <= 128 * groups


def routing(call):
    """(experts [T, K], weights [T, K]). DeepSeek's by fused_topk_deepseek where it has the kernel; what is chosen otherwise is
    the definition's own choice, and the experts are what is witnessed."""
    torch = call.torch
    method = call.variant & 3
    count = int(expert_number(call, "top_k"))
    if method == GIVEN:
        raise Unavailable("the routing is given packed, which its cutlass kernels do not take")
    if call.variant & 4:
        raise Unavailable("it applies the routing weights to the output, the definition to the input")
    logits = call["routing_logits"]
    if method == RENORMALISE:
        values, experts = torch.topk(logits.float(), count, dim=-1)
        return experts, torch.softmax(values, -1)
    if method == LLAMA4:
        values, experts = torch.topk(torch.sigmoid(logits.float()), 1, dim=-1)
        return experts, values
    groups, kept = int(expert_number(call, "n_group", 1)), int(expert_number(call, "topk_group", 1))
    if not deepseek_kernel(groups, kept, count, logits.shape[1]):
        weights, experts = choose_as_deepseek(call, logits, count)
        return experts, weights
    from flashinfer.fused_moe import fused_topk_deepseek

    values = torch.empty(len(logits), count, dtype=torch.float32, device=logits.device)
    experts = torch.empty(len(logits), count, dtype=torch.int32, device=logits.device)
    fused_topk_deepseek(logits.float().contiguous(), call["routing_bias"].float().contiguous(), groups, kept, count,
                        float(expert_number(call, "scaling", 1.0)), values, experts)
    return experts, values


def moe(call: Call):
    """cutlass_fused_moe in its fp8 block-scale mode (sm_90): activations come in bfloat16 and are quantised by the kernel,
    the intermediate as well, each by token and 128 channels: 2.6 % of a value. The halves of the first product lie as in
    the definition, the linear one first."""
    from flashinfer.fused_moe import cutlass_fused_moe

    torch = call.torch
    weights_and_scales = [(call[name], call.get(name + "_scale")) for name in ("gemm1_weights", "gemm2_weights")]
    if call.get("hidden_states_scale") is None or weights_and_scales[0][1] is None:
        raise Unavailable("on this GPU it has experts with scales by block alone")
    if any(list(w.shape[1:]) != [128 * blocks for blocks in s.shape[1:]] for w, s in weights_and_scales):
        raise Unavailable("it takes scales of blocks of 128 by 128")
    only_known_experts(call)
    hidden = scaled_hidden(call)
    experts, weights = routing(call)
    total = call["routing_logits"].shape[1]
    local, offset = call["gemm1_weights"].shape[0], int(expert_number(call, "offset", 0))
    if offset % local != 0 or total % local != 0:
        raise Unavailable("its shards begin at multiples of their size")
    output = cutlass_fused_moe(
        hidden.to(torch.bfloat16).contiguous(), int32(experts).contiguous(), weights.float().contiguous(),
        call["gemm1_weights"].contiguous(), call["gemm2_weights"].contiguous(), torch.bfloat16,
        quant_scales=[call["gemm1_weights_scale"].float().contiguous(), call["gemm2_weights_scale"].float().contiguous()],
        ep_size=total // local, ep_rank=offset // local, use_deepseek_fp8_block_scale=True, use_fused_finalize=False)
    output = output[0] if isinstance(output, (list, tuple)) else output
    call.noise = 0.1
    return call.cut(output)


SHORT = 120  # seconds beyond what compilers are given: the first launch of a module

TABLES = (
    Table(
        "flashinfer",
        NEEDS,
        {
            "activation": Row(activation, first_use_s=SHORT, coarse=((1e-3, 2e-2),)),
            "cascade": Row(cascade, first_use_s=SHORT, mutates="v, s (in place)"),
            "dsa_paged": Row(dsa_paged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "gdn": Row(gdn, least=90, mutates="state", coarse=((1e-3, 2e-2), (1e-3, 1e-2))),
            "gemma_rmsnorm": Row(norm("gemma_rmsnorm", "gemma_fused_add_rmsnorm"), first_use_s=SHORT,
                                 mutates="input, residual"),
            "gqa_paged": Row(gqa_decode_or_prefill, first_use_s=SHORT, coarse=ATTENTION),
            "gqa_ragged": Row(ragged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "layernorm": Row(layernorm, first_use_s=SHORT),
            "mamba_ssu": Row(mamba_ssu, mutates="state", coarse=((1e-3, 1e-2), (1e-3, 1e-2))),
            "mla_paged": Row(mla_paged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "mla_ragged": Row(ragged("fa2"), first_use_s=SHORT, coarse=ATTENTION),
            "moe": Row(moe, least=90, most=90, coarse=((0.0, 2e-2),)),
            "page": Row(page, first_use_s=SHORT, mutates="the caches"),
            "rmsnorm": Row(norm("rmsnorm", "fused_add_rmsnorm"), first_use_s=SHORT, mutates="input, residual"),
            "rope": Row(rope, first_use_s=SHORT, coarse=((3e-3, 1e-2), (3e-3, 1e-2))),
            "sampling": Row(sampling, first_use_s=SHORT),
            "softmax": Row(softmax, first_use_s=SHORT),
        },
        never={"gemm": "its dense products take bfloat16 by way of cuBLAS, which is torch's"},
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
)
