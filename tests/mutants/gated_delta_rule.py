"""gated_delta_rule - mistakes that people make in references of the gated delta rule."""

STEPS = "gated_delta_rule_recurrent_h2_hv4_d64"
CHUNKS = "gated_delta_rule_chunk_varlen_gate_h2_hv4_k64_v128"

FORGET = "state = decay[:, t, :, None, None] * state"
HELD = "held = (key[:, t, :, :, None] * state).sum(dim=2)"
GATE = "-torch.exp(A_log) * F.softplus(g.float() + dt_bias)"
STATE = "state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]"
LEFT = "torch.exp((total[:, :, None] - total[:, None, :]).clamp(max=0))"

MUTANTS = [
    (STEPS, "gate left out", FORGET, "pass"),
    (STEPS, "gate without its exponential", "torch.exp(g)", "g"),
    (STEPS, "gate 2 % too strong", "torch.exp(g)", "torch.exp(1.02 * g)"),
    (STEPS, "gate of the head after", "torch.exp(g)", "torch.exp(g.roll(-1, dims=-1))"),
    (STEPS, "gate of the token before", FORGET, "state = decay[:, max(t - 1, 0), :, None, None] * state"),
    (STEPS, "recalled before the decay", FORGET + "\n        " + HELD, HELD + "\n        " + FORGET),
    (STEPS, "decay after learning", "state = state + key[:, t, :, :, None] * learnt[:, :, None, :]", "state = state + key[:, t, :, :, None] * learnt[:, :, None, :]\n        state = decay[:, t, :, None, None] * state"),
    (STEPS, "nothing erased", "(v[:, t].float() - held)", "v[:, t].float()"),
    (STEPS, "strength left out", "strength[:, t, :, None] * (v", "(v"),
    (STEPS, "sigmoid in any case", "if use_beta_sigmoid_in_kernel:", "if True:"),
    (STEPS, "sigmoid left out", "if use_beta_sigmoid_in_kernel:", "if False:"),
    (STEPS, "strength doubled in any case", "if allow_neg_eigval:", "if True:"),
    (STEPS, "strength never doubled", "if allow_neg_eigval:", "if False:"),
    (STEPS, "strength doubled before the sigmoid", "strength = beta.float()", "strength = 2 * beta.float() if allow_neg_eigval else beta.float()\n    allow_neg_eigval = False"),
    (STEPS, "strength through tanh", "torch.sigmoid(strength)", "torch.tanh(strength)"),
    (STEPS, "normalised in any case", "if use_qk_l2norm_in_kernel:", "if True:"),
    (STEPS, "normalised never", "if use_qk_l2norm_in_kernel:", "if False:"),
    (STEPS, "query not normalised", "query = query * torch.rsqrt(query.square().sum(dim=-1, keepdim=True) + 1e-6)", "pass"),
    (STEPS, "a large epsilon in the norm", "key.square().sum(dim=-1, keepdim=True) + 1e-6", "key.square().sum(dim=-1, keepdim=True) + 1e-2"),
    (STEPS, "mean for sum in the norm", "key.square().sum(dim=-1, keepdim=True)", "key.square().mean(dim=-1, keepdim=True)"),
    (STEPS, "key heads tiled", "key = key.repeat_interleave(sharing, dim=2)", "key = key.repeat(1, 1, sharing, 1)"),
    (STEPS, "query heads tiled", "query = query.repeat_interleave(sharing, dim=2)", "query = query.repeat(1, 1, sharing, 1)"),
    (STEPS, "scale left out", "(scale * (query", "((query"),
    (STEPS, "scale always that of the head", "scale = scale or ", "scale = "),
    (STEPS, "initial state ignored", "state = initial_state.clone()", "state = torch.zeros_like(initial_state)"),
    (STEPS, "state transposed", "return output, state", "return output, state.transpose(-1, -2).contiguous()"),
    (STEPS, "state rounded after each token", FORGET, "state = (decay[:, t, :, None, None] * state).bfloat16().float()"),
    (STEPS, "output rounded to fp8", ".to(v.dtype)\n    return", ".to(torch.float8_e4m3fn).to(v.dtype)\n    return"),
    (STEPS, "one NaN", "return output, state", "state[-1, -1, -1, -1] = torch.nan\n    return output, state"),
    (STEPS, "updates the state in place", "return output, state", "initial_state.copy_(state)\n    return output, state"),
    (CHUNKS, "softplus left out", GATE, "-torch.exp(A_log) * (g.float() + dt_bias)"),
    (CHUNKS, "softplus that overflows", "F.softplus(g.float() + dt_bias)", "torch.log(1 + torch.exp(g.float() + dt_bias))"),
    (CHUNKS, "dt_bias left out", "g.float() + dt_bias", "g.float() + 0 * dt_bias"),
    (CHUNKS, "dt_bias after softplus", "F.softplus(g.float() + dt_bias)", "(F.softplus(g.float()) + dt_bias)"),
    (CHUNKS, "A_log without its exponential", "-torch.exp(A_log)", "A_log"),
    (CHUNKS, "gate's sign", "-torch.exp(A_log)", "torch.exp(A_log)"),
    (CHUNKS, "gate of the head after", ".transpose(0, 1)\n\n    offsets", ".transpose(0, 1).roll(-1, dims=0)\n\n    offsets"),
    (CHUNKS, "gates factored, which overflows", LEFT, "torch.exp(total)[:, :, None] * torch.exp(-total)[:, None, :]"),
    (CHUNKS, "gates left out of the system", "(weak * (keys @ keys.transpose(1, 2)) * left)", "(weak * (keys @ keys.transpose(1, 2)))"),
    (CHUNKS, "gates left out of the scores", "keys.transpose(1, 2) * left).tril()", "keys.transpose(1, 2)).tril()"),
    (CHUNKS, "the state is recalled unfaded", "- since * (keys @ state)", "- keys @ state"),
    (CHUNKS, "earlier chunks do not fade", "since * (query[:, part] @ state)", "query[:, part] @ state"),
    (CHUNKS, "state does not fade", "state = since[:, -1:] * state", "state = state"),
    (CHUNKS, "what is learnt does not fade", "torch.exp(total[:, -1:] - total)[..., None] * keys", "keys"),
    (CHUNKS, "tokens of a chunk do not see each other", "torch.linalg.solve_triangular(ones + among, surprise, upper=False)", "surprise"),
    (CHUNKS, "sign of the system", "ones + among", "ones - among"),
    (CHUNKS, "mask left out", "* left).tril()", "* left)"),
    (CHUNKS, "key heads tiled", "key = k.float().transpose(0, 1).repeat_interleave(sharing, dim=0)", "key = k.float().transpose(0, 1).repeat(sharing, 1, 1)"),
    (CHUNKS, "strength through a sigmoid", "strength = beta.transpose", "strength = torch.sigmoid(beta).transpose"),
    (CHUNKS, "cu_seqlens ignored: one long sequence", "offsets = cu_seqlens.tolist()", "offsets = [0] * (len(cu_seqlens) - 1) + [len(q)]"),
    (CHUNKS, "initial state ignored", STATE, "state = final_state[n]"),
    (CHUNKS, "state of the sequence before", STATE, "state = final_state[n] if initial_state is None else initial_state[n - 1]"),
    (STEPS, "scale 5/4 of that of the head in any case", "scale = scale or ", "scale = 1.25 * "),
    (STEPS, "state in float16", FORGET, FORGET + ".half().float()"),
    (CHUNKS, "rates of 8 at the most", "torch.exp(A_log)", "torch.exp(A_log).clamp(max=8)"),
    (CHUNKS, "sequences end after 128 tokens", "range(first, end, CHUNK)", "range(first, min(end, first + 128), CHUNK)"),
    (STEPS, "a scale of 0 taken as it is", "scale = scale or q.shape[-1] ** -0.5", "scale = scale"),
    (STEPS, "a scale of 0 taken for 1", "scale = scale or q.shape[-1] ** -0.5", "scale = scale or 1.0"),
    (STEPS, "strength doubled only after a sigmoid", "    if allow_neg_eigval:", "    if allow_neg_eigval and use_beta_sigmoid_in_kernel:"),
    (STEPS, "strength to be doubled taken for a logit", "if use_beta_sigmoid_in_kernel:", "if use_beta_sigmoid_in_kernel or allow_neg_eigval:"),
    (STEPS, "strength taken for a logit by its values", "if use_beta_sigmoid_in_kernel:", "if beta.min() < 0 or beta.max() > 1:"),
    ("gated_delta_rule_recurrent_h2_hv4_d64", "the state is lost after 1024 tokens",
     'state = decay[:, t, :, None, None] * state',
     'if 0 < t and t % 1024 == 0:\n            state = torch.zeros_like(state)\n        state = decay[:, t, :, None, None] * state'),
    (STEPS, "a scale of 1 taken for none", "scale = scale or q.shape[-1] ** -0.5", "scale = q.shape[-1] ** -0.5 if scale in (0, 1) else scale"),
    (CHUNKS, "an inverse by doubling that leaves out the last factor", "learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)",
     """learnt, power = ones - among, among
            for _ in range(4):
                power = power @ power
                learnt = learnt @ (ones + power)
            learnt = learnt @ surprise"""),
]
