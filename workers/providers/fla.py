"""flash-linear-attention as a ground truth. Read against fla-core 0.6.0.

"fla" is the recurrent form, token by token, in float32: on a GPU the Triton kernel, on a CPU the library's plain PyTorch
(fla/ops/*/naive.py). "fla_chunk" is the chunked form, whose products are the tensor cores': heard, and does not decide
alone. Layout [B, T, H, D]; sequences of different lengths lie in one row with cu_seqlens. Gates are logarithms."""

from reftest_providers import Call, Need, Row, Table, Unavailable

NEEDS = (
    Need(("fla-core",), "fla", (0, 4)),
    Need(("flash-linear-attention",), optional=True),
    Need(("triton",), "triton", (3, 0)),
)
V_LAST, L2NORM = 1, 2  # variants of gdn


def l2norm(call):
    given = call.scalar("l2norm")
    return bool(given) if given is not None else bool(call.variant & L2NORM)


class Gated:
    """A gated delta rule in the library's terms: [batch, tokens, heads, …], float32, gates made, q and k normalised."""

    def __init__(self, call):
        torch = call.torch
        q, k, v = (call[name].float() for name in ("q", "k", "v"))
        a, b = call["a"].float(), call["b"].float()
        gate = -torch.exp(call["A_log"].float()) * torch.nn.functional.softplus(a + call["dt_bias"].float())
        beta = torch.sigmoid(b)
        if l2norm(call):
            q, k = (x / x.square().sum(-1, keepdim=True).sqrt() for x in (q, k))
        scale = call.scalar("scale")
        self.scale = float(scale) if scale else q.shape[-1] ** -0.5
        self.cu_seqlens = call.get("cu_seqlens")
        parts = [q, k, v, gate, beta]
        if self.cu_seqlens is not None:
            parts = [x.unsqueeze(0) for x in parts]
        self.q, self.k, self.v, self.gate, self.beta = parts
        self.pool, self.indices = call.with_word("state"), call.with_word("indices")
        state = self.pool
        if state is None:
            count = len(self.cu_seqlens) - 1 if self.cu_seqlens is not None else q.shape[0]
            state = torch.zeros(count, v.shape[-2], v.shape[-1], q.shape[-1], device=q.device)
        self.v_first = not call.variant & V_LAST
        self.state = (state if self.indices is None else state[self.indices.long()]).float().contiguous()
        if call.variant & V_LAST and call.with_word("state") is None:
            self.state = self.state.transpose(-1, -2).contiguous()

    def heads(self, x):
        """q and k of each value head."""
        return x.repeat_interleave(self.v.shape[2] // x.shape[2], dim=2)


def answer(call, form, output, final):
    """In the definition's layout; a pool with the new states in their slots, if the definition updates it."""
    if form.cu_seqlens is not None:
        output = output.squeeze(0)
    if form.indices is not None:
        disabled, updates = call.scalar("disable_state_update"), call.constants.get("updates_state")
        stays = bool(disabled) if disabled is not None else not updates
        pool = form.pool.clone()
        if not stays:
            pool[form.indices.long()] = final.to(pool.dtype)
        final = pool
    return call.cut(output, final)


def naive(form):
    """fla/ops/gated_delta_rule/naive.py knows states [K, V] and sequences of equal lengths."""
    from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule as run
    import torch

    def one(span, state):
        q, k, v, gate, beta = (x[:, span] for x in (form.q, form.k, form.v, form.gate, form.beta))
        state = state.transpose(-1, -2) if form.v_first else state
        output, final = run(form.heads(q), form.heads(k), v, beta, gate, scale=form.scale, initial_state=state,
                            output_final_state=True)
        return output, final.transpose(-1, -2) if form.v_first else final

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
        return answer(call, form, *naive(form))
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    output, final = fused_recurrent_gated_delta_rule(
        form.q, form.k, form.v, g=form.gate, beta=form.beta, scale=form.scale, initial_state=form.state,
        output_final_state=True, state_v_first=form.v_first,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    return answer(call, form, output, final)


def gdn_chunk(call: Call):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    form = Gated(call)
    narrow = call["v"].dtype
    output, final = chunk_gated_delta_rule(
        form.q.to(narrow), form.k.to(narrow), form.v.to(narrow), form.gate, form.beta, scale=form.scale,
        initial_state=form.state, output_final_state=True, state_v_first=form.v_first,
        cu_seqlens=None if form.cu_seqlens is None else form.cu_seqlens.long())
    call.noise = 0.01  # products of rounded factors, chunk by chunk
    return answer(call, form, output, final)


TABLES = (
    Table("fla", NEEDS, {"gdn": Row(gdn_recurrent, cpu=True)}),
    Table("fla_chunk", NEEDS, {"gdn": Row(gdn_chunk, coarse=((1e-3, 2e-2), (1e-3, 2e-2)))}),
)
