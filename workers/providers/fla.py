"""flash-linear-attention as a ground truth. Read against fla-core 0.6.0.

"fla" is the recurrent form, token by token, in float32: on a GPU the Triton kernel, on a CPU the library's plain PyTorch
(fla/ops/*/naive.py). "fla_chunk" is the chunked form, whose products are the tensor cores': heard, and does not decide
alone. Layout [B, T, H, D]; sequences of different lengths lie in one row with cu_seqlens. Gates are logarithms."""

import importlib

from reftest_parts import GatedDelta
from reftest_providers import Call, Need, Row, Table, Unavailable

NEEDS = (
    # Older ones swallow a `state_v_first` among their **kwargs, and answer with states the other way about.
    Need(("fla-core",), "fla", (0, 6)),
    Need(("flash-linear-attention",), optional=True),
    Need(("triton",), "triton", (3, 0)),
    Need(("tilelang",), optional=True),  # which it takes for kernels that a triton is known to compile wrongly
)


class Gated(GatedDelta):
    """A gated delta rule in the library's terms: [batch, tokens, heads, …], float32, gates made, q and k normalised. `pool`:
    states as they came, `state` those of the sequences."""

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
        """q and k of each value head."""
        return x.repeat_interleave(self.v.shape[2] // x.shape[2], dim=2)

    def answer(self, output, final):
        """In the definition's layout; a pool with the new states in their slots, if the definition updates it."""
        if self.cu_seqlens is not None:
            output = output.squeeze(0)
        if self.indices is not None:
            pool = self.pool.clone()
            if self.updates:
                pool[self.indices.long()] = final.to(pool.dtype)
            final = pool
        return super().answer(output, final)


def naive(form):
    """fla/ops/gated_delta_rule/naive.py knows states [K, V] and sequences of equal lengths."""
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
        raise Unavailable("there is no sequence")
    return torch.cat([x for x, _ in parts], dim=1), torch.cat([x for _, x in parts])


def gdn_recurrent(call: Call):
    form = Gated(call)
    if call.device == "cpu":
        return form.answer(*naive(form))
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    output, final = fused_recurrent_gated_delta_rule(
        form.q, form.k, form.v, g=form.gate, beta=form.beta, scale=form.scale, initial_state=form.state,
        output_final_state=True, state_v_first=not form.v_last,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    return form.answer(output, final)


def gdn_chunk(call: Call):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    form = Gated(call)
    output, final = chunk_gated_delta_rule(
        form.q.to(form.narrow), form.k.to(form.narrow), form.v.to(form.narrow), form.gate, form.beta, scale=form.scale,
        initial_state=form.state, output_final_state=True, state_v_first=not form.v_last,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    call.noise = 0.01  # products of rounded factors, chunk by chunk
    return form.answer(output, final)


# ---- linear attention: gla, simple_gla, delta_rule, gated_delta_rule, kda ----

V_FIRST, SAYS_L2NORM, SAYS_SIGMOID, SAYS_DOUBLED = 8, 16, 32, 64  # variants: kernels/recurrence.h
DELTA_K_MOST = 256  # of a key, in chunked kernels with the delta rule
# With a constant gate the chunked kernel multiplies rows past a sequence's end, which are 0, by e^-gamma for each of them:
# 0 times infinity where that overflows (e^88). The same numbers as a gate of each token are masked there.
CHUNK_ROWS, GAMMA_MOST = 64, 80.0


def role_of(name, tensor):
    """As kernels/recurrence_roles.c takes them."""
    if not tensor.is_floating_point():
        return "cu_seqlens"
    for word, role in (("state", "state"), ("a_log", "a_log"), ("bias", "dt_bias"), ("gamma", "gamma")):
        if word in name.lower():
            return role
    return {"h0": "state", "g": "gate", "gk": "gate", "beta": "beta", "b": "beta"}.get(name, name[0].lower())


class Linear:
    """A case in the library's terms: float32, [batch, tokens, heads, ...]. `state` may be None, states are [V, K] if
    `v_first`; `gate` is as the definition has it, for log_gate to make sense of."""

    def __init__(self, call):
        parts = {role_of(name, x): x for name, x in call.inputs.items() if hasattr(x, "is_floating_point")}
        self.flat = parts["q"].dim() == 3

        def by_token(role):
            x = parts.get(role)
            return None if x is None else x.float().unsqueeze(0) if self.flat else x.float()

        self.q, self.k, self.v, self.gate, self.beta = (by_token(r) for r in ("q", "k", "v", "gate", "beta"))
        self.narrow = parts["v"].dtype
        self.state, self.gamma, self.a_log, self.dt_bias = (
            parts[r].float() if r in parts else None for r in ("state", "gamma", "a_log", "dt_bias"))
        # A copy: the library keeps those it saw last, and the arena goes.
        self.cu_seqlens = parts["cu_seqlens"].to(call.torch.int64, copy=True) if "cu_seqlens" in parts else None
        self.scale = float(call.scalar("scale") or 0) or self.q.shape[-1] ** -0.5
        self.lower_bound = call.scalar("lower_bound")
        self.v_first = bool(call.variant & V_FIRST)
        self.l2norm, self.sigmoid, self.doubled = (
            bool(call.variant & bit if call.scalar(word) is None else call.scalar(word))
            for word, bit in (("l2norm", SAYS_L2NORM), ("beta_sigmoid", SAYS_SIGMOID), ("neg_eigval", SAYS_DOUBLED)))

    def of_value_heads(self, x):
        return x.repeat_interleave(self.v.shape[2] // x.shape[2], dim=2)

    def normalised(self, x):
        return x / x.square().sum(-1, keepdim=True).sqrt() if self.l2norm else x

    def strength(self):
        beta = self.beta.sigmoid() if self.sigmoid else self.beta
        return 2 * beta if self.doubled else beta

    def log_gate(self):
        """The logarithm of what stays, by the library's plain functions; None: nothing is forgotten."""
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
        return call.cut(*(final if "state" in name.lower() or name == "ht" else output for name in call.outputs))


# Kernels by family: (name after the form, its gate's keyword, what it does by itself of
#   l2norm, beta (sigmoid, twice that), v_first (states [V, K]), groups (of value heads)
#   softplus (of gates with A_log), bounded (with a lower bound)).
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
    """What a kernel is called with, as much of it raw as it knows what to do with."""
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
    """The library's plain PyTorch over sequences of one length. Two of them have no scale but 1 / sqrt(K)."""
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
            raise Unavailable("there is no sequence")
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
        if form.scale <= 0:
            raise Unavailable("it takes a scale above 0")
        return by_kernel("fused_recurrent_", RECURRENT, family, call, form)

    return run


def chunk(family):
    def run(call: Call):
        form = Linear(call)
        if form.narrow == call.torch.float32:
            raise Unavailable("it takes q, k and v of float16 and bfloat16")
        if form.beta is not None and form.k.shape[-1] > DELTA_K_MOST:
            raise Unavailable("it has no kernel for keys of more than %d" % DELTA_K_MOST)
        if form.q.numel() == 0:
            raise Unavailable("there is no token")
        if form.gamma is not None and float(form.gamma.min()) * CHUNK_ROWS < -GAMMA_MOST:
            form.gate, form.gamma = form.gamma.expand(*form.v.shape[:3]), None

        def narrow(words):
            words.update({name: words[name].to(form.narrow) for name in "qkv"})

        call.noise = 0.01  # products of rounded factors, chunk by chunk
        return by_kernel("chunk_", CHUNK, family, call, form, narrow)

    return run


COARSE = ((1e-3, 2e-2), (1e-3, 2e-2))
LINEAR = ("delta_rule", "gated_delta_rule", "gla", "kda", "simple_gla")

TABLES = (
    Table("fla", NEEDS, {"gdn": Row(gdn_recurrent, cpu=True),
                         **{family: Row(recurrent(family), cpu=True) for family in LINEAR}}),
    Table("fla_chunk", NEEDS, {"gdn": Row(gdn_chunk, coarse=COARSE),
                               **{family: Row(chunk(family), coarse=COARSE) for family in LINEAR}}),
)
