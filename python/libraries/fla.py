"""fla - computes ground truths with flash-linear-attention. The table in this file was written for fla-core 0.6.0.

There are two ground truths. "fla" is the recurrent form, which computes token by token in float32: on a GPU by a Triton
kernel, on a CPU by the library's plain PyTorch code (fla/ops/*/naive.py). "fla_chunk" is the chunked form, which
multiplies on tensor cores. The comparison with "fla_chunk" is reported but does not decide a verdict alone. The
library's layout is [B, T, H, D]. Sequences of different lengths are concatenated along T with B = 1, and cu_seqlens
gives their boundaries. The library's gates are logarithms of the decay."""

import importlib

from reftest_providers import Call, GatedDelta, Need, Row, Table, Unavailable, require_elements

NEEDS = (
    # Releases before 0.6 silently ignore the argument `state_v_first` and return transposed states.
    Need(("fla-core",), "fla", (0, 6)),
    Need(("flash-linear-attention",), optional=True),
    Need(("triton",), "triton", (3, 0)),
    Need(("tilelang",), optional=True),  # for kernels that some versions of triton miscompile
)


class Gated(GatedDelta):
    """A case of the gated delta rule in the library's form: tensors [batch, tokens, heads, …] in float32, with computed
    gates and normalised q and k. `pool` is the state pool that was passed, and `state` contains the initial state of
    each sequence."""

    def __init__(self, call):
        super().__init__(call)
        torch = call.torch
        self.narrow = self.v.dtype
        gate = -torch.exp(self.a_log.float()) * torch.nn.functional.softplus(self.a.float() + self.dt_bias.float())
        parts = [self.q.float(), self.k.float(), self.v.float(), gate, torch.sigmoid(self.b.float())]
        if self.l2norm:
            parts[:2] = (x / x.square().sum(-1, keepdim=True).sqrt() for x in parts[:2])
        self.pool, state = self.state, self.zero_state() if self.state is None else self.state
        if self.v_last and self.pool is None:
            state = state.transpose(-1, -2)
        self.state = (state if self.indices is None else state[self.indices.long()]).float().contiguous()
        if self.cu_seqlens is not None:
            parts = [x.unsqueeze(0) for x in parts]
        self.q, self.k, self.v, self.gate, self.beta = parts

    def heads(self, x):
        """Repeats q or k for each value head."""
        return x.repeat_interleave(self.v.shape[2] // x.shape[2], dim=2)

    def answer(self, output, final):
        """Returns the results in the definition's layout. If the definition updates the state pool, the results include
        the whole pool with the new states in their slots."""
        if self.cu_seqlens is not None:
            output = output.squeeze(0)
        if self.indices is not None:
            pool = self.pool.clone()
            if self.updates:
                pool[self.indices.long()] = final.to(pool.dtype)
            final = pool
        return self.call.outputs_of(output=output, new_state=final)


def naive(form):
    """Computes with fla/ops/gated_delta_rule/naive.py, which supports states [K, V] and sequences of equal lengths."""
    from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule as run
    import torch

    def one(span, state):
        q, k, v, gate, beta = (x[:, span] for x in (form.q, form.k, form.v, form.gate, form.beta))
        state = state if form.v_last else state.transpose(-1, -2)
        output, final = run(form.heads(q), form.heads(k), v, beta, gate, scale=form.scale, initial_state=state,
                            output_final_state=True)
        return output, final if form.v_last else final.transpose(-1, -2)

    if form.cu_seqlens is None:
        return one(slice(None), form.state)
    ends = [int(x) for x in form.cu_seqlens.tolist()]
    parts = [one(slice(a, b), form.state[i : i + 1]) for i, (a, b) in enumerate(zip(ends, ends[1:]))]
    if not parts:
        raise Unavailable("the case has no sequence")
    return torch.cat([x for x, _ in parts], dim=1), torch.cat([x for _, x in parts])


def gdn_recurrent(call: Call):
    form = Gated(call)
    if call.device == "cpu":
        return form.answer(*naive(form))
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    require_elements(form.q)
    output, final = fused_recurrent_gated_delta_rule(
        form.q, form.k, form.v, g=form.gate, beta=form.beta, scale=form.scale, initial_state=form.state,
        output_final_state=True, state_v_first=not form.v_last,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    return form.answer(output, final)


def gdn_chunk(call: Call):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    form = Gated(call)
    require_elements(form.q)
    output, final = chunk_gated_delta_rule(
        form.q.to(form.narrow), form.k.to(form.narrow), form.v.to(form.narrow), form.gate, form.beta, scale=form.scale,
        initial_state=form.state, output_final_state=True, state_v_first=not form.v_last,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    call.noise = 0.01  # the kernel rounds factors before tensor cores multiply them
    return form.answer(output, final)


# ---- linear attention: gla, simple_gla, delta_rule, gated_delta_rule, kda ----

DELTA_K_MOST = 256  # the largest head dimension of keys that the chunked kernels of the delta rule support
# The chunked kernel computes CHUNK_ROWS rows at a time. If one gate, gamma, applies to all tokens, the kernel
# multiplies the rows past a sequence's end, which are 0, by a power of e^-gamma. A power above e^88 overflows float32
# to infinity, and 0 times infinity is NaN. If that could happen (GAMMA_MOST), the gate is passed as a tensor with one
# value for each token: the kernel then ignores the rows past a sequence's end.
CHUNK_ROWS, GAMMA_MOST = 64, 80.0


class Linear:
    """A case of linear attention in the library's form: tensors [batch, tokens, heads, ...] in float32. `state` may be
    None; states are [V, K] if `v_first` is set. `gate` is the definition's gate; log_gate returns its logarithm."""

    def __init__(self, call):
        self.flat = call["q"].dim() == 3

        def by_token(role):
            x = call.get(role)
            return None if x is None else x.float().unsqueeze(0) if self.flat else x.float()

        self.q, self.k, self.v, self.gate, self.beta = (by_token(role) for role in ("q", "k", "v", "gate", "beta"))
        self.narrow = call["v"].dtype
        self.state, self.gamma, self.a_log, self.dt_bias = (
            call[role].float() if call.has(role) else None for role in ("state", "gamma", "a_log", "dt_bias"))
        # Copies the tensor, because the library keeps its last arguments in a cache, but the shared arena is unmapped
        # after the request.
        self.cu_seqlens = call["cu_seqlens"].to(call.torch.int64, copy=True) if call.has("cu_seqlens") else None
        self.scale = float(call.get("scale", 0)) or self.q.shape[-1] ** -0.5
        self.lower_bound = call.get("lower_bound")
        self.v_first = call.is_("v_first")
        self.l2norm, self.sigmoid, self.doubled = (
            bool(call.get(word, call.is_(word))) for word in ("l2norm", "sigmoid", "doubled"))

    def of_value_heads(self, x):
        return x.repeat_interleave(self.v.shape[2] // x.shape[2], dim=2)

    def normalised(self, x):
        return x / x.square().sum(-1, keepdim=True).sqrt() if self.l2norm else x

    def strength(self):
        beta = self.beta.sigmoid() if self.sigmoid else self.beta
        return 2 * beta if self.doubled else beta

    def log_gate(self):
        """Returns the logarithm of the decay, computed with the library's plain PyTorch functions, or None if there is
        no decay."""
        from fla.ops.kda.gate import naive_kda_gate, naive_kda_lowerbound_gate

        if self.gate is None:
            return None if self.gamma is None else self.gamma.expand(*self.v.shape[:3])
        if self.a_log is None and self.lower_bound is None:
            return self.gate
        by_head = self.gate.dim() == 3
        gate = self.gate.unsqueeze(-1) if by_head else self.gate
        if self.lower_bound is not None:
            gate = naive_kda_lowerbound_gate(gate, self.a_log, self.dt_bias, float(self.lower_bound))
        else:
            gate = naive_kda_gate(gate, self.a_log, self.dt_bias)
        return gate.squeeze(-1) if by_head else gate

    def answer(self, call, output, final):
        output = output.squeeze(0) if self.flat else output
        return call.outputs_of(output=output, new_state=final)


# For each op family: the last part of the kernel's name, the keyword argument for the gate, and the set of steps that
# the kernel does itself. The steps are:
# - "l2norm": normalise q and k
# - "beta": compute the sigmoid of beta, or twice the sigmoid
# - "v_first": use states with the shape [V, K]
# - "groups": repeat each head of q and k for several value heads
# - "gamma": use one gate for all tokens
# - "softplus": compute the gates from A_log
# - "bounded": compute gates that have a lower bound
OWN = {"l2norm", "beta", "v_first", "groups"}
RECURRENT = {
    "gla": ("gla", "gk", {"v_first"}),
    "simple_gla": ("simple_gla", "g", {"v_first", "gamma"}),
    "delta_rule": ("delta_rule", None, {"l2norm"}),
    "gated_delta_rule": ("gated_delta_rule", "g", OWN | {"softplus"}),
    "kda": ("kda", "g", OWN | {"softplus", "bounded"}),
}
CHUNK = {
    "gla": ("gla", "g", {"v_first"}),
    "simple_gla": ("simple_gla", "g", {"v_first", "gamma"}),
    "delta_rule": ("delta_rule", None, {"l2norm"}),
    "gated_delta_rule": ("gated_delta_rule", "g", OWN),
    "kda": ("kda", "g", OWN),
}


def gate_words(form, keyword, own):
    if keyword is None:
        return {}
    if form.gate is None and "gamma" in own:
        return {"g_gamma": form.gamma.contiguous()}
    if form.gate is not None and ("bounded" if form.lower_bound is not None else "softplus") in own and (
            form.lower_bound is not None or form.a_log is not None):
        words = {keyword: form.gate, "use_gate_in_kernel": True, "A_log": form.a_log,
                 "dt_bias": None if form.dt_bias is None else form.dt_bias.flatten()}
        return words if form.lower_bound is None else {**words, "lower_bound": float(form.lower_bound)}
    return {keyword: form.log_gate().contiguous()}


def kernel_words(form, keyword, own):
    """Returns the kernel's arguments. `own` names the steps that the kernel does itself. For a step that the kernel
    does itself, the kernel gets the inputs of the step; for any other step, it gets the result."""
    q, k, state = form.q, form.k, form.state
    words = {"v": form.v, "scale": form.scale, "output_final_state": True, "cu_seqlens": form.cu_seqlens}
    words.update(gate_words(form, keyword, own))
    if "l2norm" in own:
        words["use_qk_l2norm_in_kernel"] = form.l2norm
    else:
        q, k = form.normalised(q), form.normalised(k)
    if "groups" not in own:
        q, k = form.of_value_heads(q), form.of_value_heads(k)
    if "v_first" in own:
        words["state_v_first"] = form.v_first
    elif form.v_first and state is not None:
        state = state.transpose(-1, -2).contiguous()
    if form.beta is not None:
        raw = "beta" in own and form.sigmoid
        words["beta"] = form.beta if raw else form.strength()
        if raw:
            words.update(use_beta_sigmoid_in_kernel=True, allow_neg_eigval=form.doubled)
    return {"q": q, "k": k, "initial_state": state, **words}


def by_kernel(prefix, kernels, family, call, form, change=None):
    name, keyword, own = kernels[family]
    words = kernel_words(form, keyword, own)
    if change is not None:
        change(words)
    output, final = getattr(importlib.import_module("fla.ops." + family), prefix + name)(**words)
    if form.v_first and "v_first" not in own:
        final = final.transpose(-1, -2)
    return form.answer(call, output, final)


def plain(family, x, q, k, v, gate, beta, state):
    """Computes with the library's plain PyTorch code, which requires sequences of equal lengths. Two functions of this
    code have no argument for the scale and always use 1 / sqrt(K). They get the variable `scaled` as the queries: q
    multiplied by a factor, so that their results have the scale x.scale."""
    module = importlib.import_module("fla.ops.%s.naive" % family)
    scaled = q * (x.scale * q.shape[-1] ** 0.5)
    if family == "gla":
        return module.naive_recurrent_gla(scaled, k, v, gate, state, True)
    if family == "simple_gla":
        return module.naive_recurrent_simple_gla(q, k, v, gate, x.scale, state, True)
    if family == "delta_rule":
        output, final = module.delta_rule_recurrence(*(y.transpose(1, 2) for y in (scaled, k, v, beta)), state)
        return output.transpose(1, 2), final
    run = module.naive_recurrent_kda if family == "kda" else module.naive_recurrent_gated_delta_rule
    return run(q, k, v, beta=beta, g=gate, scale=x.scale, initial_state=state, output_final_state=True)


def by_plain(family, call, form):
    torch = call.torch
    parts = [form.of_value_heads(form.normalised(x)) for x in (form.q, form.k)]
    parts += [form.v, form.log_gate(), None if form.beta is None else form.strength()]
    state = form.state.transpose(-1, -2) if form.v_first and form.state is not None else form.state
    if form.cu_seqlens is None:
        output, final = plain(family, form, *parts, state)
    else:
        ends = form.cu_seqlens.tolist()
        if len(ends) < 2:
            raise Unavailable("the case has no sequence")
        answers = [
            plain(family, form, *(None if x is None else x[:, a:b] for x in parts),
                  None if state is None else state[i : i + 1])
            for i, (a, b) in enumerate(zip(ends, ends[1:]))]
        output, final = torch.cat([o for o, _ in answers], dim=1), torch.cat([s for _, s in answers])
    return form.answer(call, output, final.transpose(-1, -2) if form.v_first else final)


def recurrent(family):
    def run(call: Call):
        form = Linear(call)
        if call.device == "cpu":
            return by_plain(family, call, form)
        require_elements(form.q)
        if form.scale <= 0:
            raise Unavailable("it requires a scale above 0")
        return by_kernel("fused_recurrent_", RECURRENT, family, call, form)

    return run


def chunk(family):
    def run(call: Call):
        form = Linear(call)
        if form.narrow == call.torch.float32:
            raise Unavailable("it requires q, k and v in float16 or bfloat16")
        if form.beta is not None and form.k.shape[-1] > DELTA_K_MOST:
            raise Unavailable("it has no kernel for keys with a head dimension above %d" % DELTA_K_MOST)
        require_elements(form.q)
        if form.gamma is not None and float(form.gamma.min()) * CHUNK_ROWS < -GAMMA_MOST:
            form.gate, form.gamma = form.gamma.expand(*form.v.shape[:3]), None

        def narrow(words):
            words.update({name: words[name].to(form.narrow) for name in "qkv"})

        call.noise = 0.015  # the kernel rounds factors before tensor cores multiply them
        return by_kernel("chunk_", CHUNK, family, call, form, narrow)

    return run


def rmsnorm(call: Call):
    from fla.modules.norm.layernorm import rms_norm

    if call.has("residual"):
        raise Unavailable("with a residual, it rounds the sum of input and residual before the normalisation")
    require_elements(call["hidden"])
    return call.outputs_of(output=rms_norm(call["hidden"], call["weight"], None, eps=float(call.constant("eps"))))


COARSE = {"output": (1e-3, 2e-2), "new_state": (1e-3, 2e-2)}
LINEAR = ("delta_rule", "gated_delta_rule", "gla", "kda", "simple_gla")

TABLES = (
    Table("fla", NEEDS, {"gdn": Row(gdn_recurrent, cpu=True),
                         "rmsnorm": Row(rmsnorm, on_request=True),
                         **{family: Row(recurrent(family), cpu=True) for family in LINEAR}}),
    Table("fla_chunk", NEEDS, {"gdn": Row(gdn_chunk, coarse=COARSE),
                               **{family: Row(chunk(family), coarse=COARSE) for family in LINEAR}}),
)
