"""kda - mistakes that people make in references of Kimi delta attention."""

STEPS = "kda_recurrent_qk_l2norm_v_first_h2_hv4_d64"
CHUNKS = "kda_chunk_varlen_gate_beta_sigmoid_h4_d64"
BOUNDED = "kda_recurrent_lower_bound_h2_k64_v32"

FORGET = "state = state * decay[:, t, :, None, :]"
HELD = 'held = torch.einsum("bhvk,bhk->bhv", state, key[:, t])'
GATE = "F.softplus(g[0].float() + dt_bias.view(g.shape[2:]))"
BOUND = "lower_bound * torch.sigmoid(torch.exp(A_log)[:, None] * (g.float() + dt_bias))"
RETURN = "return output.to(v.dtype), state"
LEFT = "torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))"

MUTANTS = [
    (STEPS, "gate left out", FORGET, "pass"),
    (STEPS, "gates of keys for values", FORGET, "state = state * decay[:, t, :, :, None]"),
    (STEPS, "one gate for all keys", "torch.exp(g)", "torch.exp(g.mean(dim=-1, keepdim=True)).expand_as(g)"),
    (STEPS, "gate of the first key for all", "torch.exp(g)", "torch.exp(g[..., :1]).expand_as(g)"),
    (STEPS, "gate 2 % too strong", "torch.exp(g)", "torch.exp(1.02 * g)"),
    (STEPS, "gate without its exponential", "torch.exp(g)", "g"),
    (STEPS, "gate through a sigmoid", "torch.exp(g)", "torch.sigmoid(g)"),
    (STEPS, "recalled before the decay", FORGET + "\n        " + HELD, HELD + "\n        " + FORGET),
    (STEPS, "nothing erased", "(value[:, t] - held)", "value[:, t]"),
    (STEPS, "strength left out", "beta[:, t, :, None] * (value", "(value"),
    (STEPS, "strength through a sigmoid", "beta[:, t, :, None] * (value", "beta[:, t, :, None].sigmoid() * (value"),
    (STEPS, "strength of the head before", "beta[:, t, :, None] * (value", "beta[:, t, :, None].roll(1, dims=1) * (value"),
    (STEPS, "query not normalised", "normalised(q)", "q.float()"),
    (STEPS, "key not normalised", "normalised(k)", "k.float()"),
    (STEPS, "a large epsilon in the norm", "+ 1e-6", "+ 1e-2"),
    (STEPS, "heads tiled", "// (v.shape[2] // q.shape[2])", "% q.shape[2]"),
    (STEPS, "state [K, V]", "state = initial_state.clone()", "state = initial_state.transpose(-1, -2)"),
    (STEPS, "final state [K, V]", RETURN, "return output.to(v.dtype), state.transpose(-1, -2).contiguous()"),
    (STEPS, "scale left out", "scale * torch.einsum", "torch.einsum"),
    (STEPS, "scale always that of the head", "scale = scale or ", "scale = "),
    (STEPS, "initial state ignored", "state = initial_state.clone()", "state = torch.zeros_like(initial_state)"),
    (STEPS, "answers before learning", 'scale * torch.einsum("bhvk,bhk->bhv", state, query[:, t])', 'scale * torch.einsum("bhvk,bhk->bhv", state - learnt[..., :, None] * key[:, t, :, None, :], query[:, t])'),
    (STEPS, "final state that came in", RETURN, "return output.to(v.dtype), initial_state.clone()"),
    (STEPS, "state in bfloat16", FORGET, FORGET + ".bfloat16()"),
    (CHUNKS, "softplus left out", GATE, "(g[0].float() + dt_bias.view(g.shape[2:]))"),
    (CHUNKS, "softplus that overflows", "F.softplus(", "(lambda x: torch.log(1 + torch.exp(x)))("),
    (CHUNKS, "dt_bias left out", " + dt_bias.view(g.shape[2:]))", ")"),
    (CHUNKS, "dt_bias key after key, not head after head", "dt_bias.view(g.shape[2:])", "dt_bias.view(g.shape[3], g.shape[2]).T"),
    (CHUNKS, "A_log without its exponential", "-torch.exp(A_log)", "A_log"),
    (CHUNKS, "sigmoid left out", "torch.sigmoid(beta[0].float())", "beta[0].float()"),
    (CHUNKS, "sums of gates from the token after", "gate[:, part].cumsum(dim=1)", "gate[:, part].cumsum(dim=1) - gate[:, part]"),
    (CHUNKS, "gates factored, which overflows", LEFT, "torch.exp(total)[:, :, None] * torch.exp(-total)[:, None]"),
    (CHUNKS, "gates of the other direction", "total[:, :, None] - total[:, None]", "total[:, None] - total[:, :, None]"),
    (CHUNKS, "the state is recalled unfaded", "(since * keys) @ state", "keys @ state"),
    (CHUNKS, "earlier chunks do not fade", "(since * query[:, part]) @ state", "query[:, part] @ state"),
    (CHUNKS, "state fades by the first token's gates", "since[:, -1, :, None] * state", "since[:, 0, :, None] * state"),
    (CHUNKS, "what is learnt does not fade", "torch.exp(total[:, -1:] - total) * keys", "keys"),
    (CHUNKS, "tokens of a chunk do not see each other", "torch.linalg.solve_triangular(ones + among, surprise, upper=False)", "surprise"),
    (CHUNKS, "a token sees itself", "tril(diagonal=-1)", "tril()"),
    (CHUNKS, "mask left out", "left, keys).tril()\n", "left, keys)\n"),
    (CHUNKS, "chunks that cross sequences", "min(start + CHUNK, end)", "min(start + CHUNK, q.shape[1])"),
    (CHUNKS, "initial state ignored", "state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]", "state = final_state[n]"),
    (CHUNKS, "axis of the batch lost", "output.transpose(0, 1)[None]", "output.transpose(0, 1)"),
    (BOUNDED, "softplus for the bound", BOUND, "-torch.exp(A_log)[:, None] * torch.nn.functional.softplus(g.float() + dt_bias)"),
    (BOUNDED, "bound ignored", "gate = lower_bound *", "gate = -1 *"),
    (BOUNDED, "bound always -5", "gate = lower_bound *", "gate = -4.9 *"),
    (BOUNDED, "clamped to the bound", BOUND, "(-torch.exp(A_log)[:, None] * torch.nn.functional.softplus(g.float() + dt_bias)).clamp(min=lower_bound)"),
    (BOUNDED, "A_log left out", "torch.exp(A_log)[:, None] * (", "("),
    (BOUNDED, "A_log on g alone", "torch.exp(A_log)[:, None] * (g.float() + dt_bias)", "torch.exp(A_log)[:, None] * g.float() + dt_bias"),
    (BOUNDED, "dt_bias left out", "(g.float() + dt_bias)", "g.float()"),
    (BOUNDED, "recalled before the decay", "state = decay[:, t] * state\n        learnt = strength[:, t] * (value[:, t] - (key[:, t, :, None] @ state)[:, :, 0])", "learnt = strength[:, t] * (value[:, t] - (key[:, t, :, None] @ state)[:, :, 0])\n        state = decay[:, t] * state"),
    (BOUNDED, "returns zeros", "return output.to(v.dtype)", "return 0 * output.to(v.dtype)"),
    (BOUNDED, "bound -5 in any case", "gate = lower_bound *", "gate = -5 *"),
    (BOUNDED, "sequences beyond 300 left out", "return output.to(v.dtype)", "output[300:] = 0\n    return output.to(v.dtype)"),
    (STEPS, "scale 5/4 of that of the head in any case", "scale = scale or ", "scale = 1.25 * "),
    (STEPS, "state in float16", FORGET, FORGET + ".half().float()"),
    (CHUNKS, "rates of 8 at the most", "-torch.exp(A_log)", "-torch.exp(A_log).clamp(max=8)"),
    (CHUNKS, "sequences end after 128 tokens", "range(first, end, CHUNK)", "range(first, min(end, first + 128), CHUNK)"),
    (STEPS, "a scale of 0 taken as it is", "scale = scale or q.shape[-1] ** -0.5", "scale = scale"),
    (STEPS, "a scale of 0 taken for 1", "scale = scale or q.shape[-1] ** -0.5", "scale = scale or 1.0"),
    (CHUNKS, "strength taken for a logit by its values", "torch.sigmoid(beta[0].float())", "(beta[0].sigmoid() if beta.min() < 0 or beta.max() > 1 else beta[0]).float()"),
    ("kda_recurrent_qk_l2norm_v_first_h2_hv4_d64", "the state is lost after 1024 tokens",
     'state = state * decay[:, t, :, None, :]',
     'if 0 < t and t % 1024 == 0:\n            state = torch.zeros_like(state)\n        state = state * decay[:, t, :, None, :]'),
    (STEPS, "a scale of 1 taken for none", "scale = scale or q.shape[-1] ** -0.5", "scale = q.shape[-1] ** -0.5 if scale in (0, 1) else scale"),
    (CHUNKS, "an inverse by doubling that leaves out the last factor", "learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)",
     """learnt, power = ones - among, among
            for _ in range(4):
                power = power @ power
                learnt = learnt @ (ones + power)
            learnt = learnt @ surprise"""),
]

# The words of the diagnosis that names a mistake (diagnoses.py), as regular expressions.
DIAGNOSES = {
    "gate left out": r"the gate were left out \(no decay\)",
    "one gate for all keys": "one gate, the mean over the keys, applied to all keys",
    "gate of the first key for all": "one gate, that of the first key, applied to all keys",
    "gate through a sigmoid": "the gate went through a sigmoid, not an exponential",
    "recalled before the decay": "the delta rule read the state before the decay",
    "nothing erased": "nothing were erased",
    "strength left out": r"beta were left out \(taken as 1\)",
    "strength through a sigmoid": "beta went through a sigmoid, or its sigmoid were left out",
    "strength of the head before": "were read one element too early along axis 2",
    "query not normalised": r"q alone were not normalised \(or were, where neither is\)",
    "heads tiled": "heads of q and k were tiled, not interleaved",
    "state [K, V]": "the initial state were transposed",
    "final state [K, V]": "the final state were transposed",
    "scale left out": "the scale were left out",
    "scale always that of the head": r"the scale were 1 / sqrt\(K\), not the given one",
    "initial state ignored": "the initial state were ignored",
    "answers before learning": "the output were read before the token updates the state",
    "final state that came in": "the final state were the initial one",
    "dt_bias left out": "dt_bias were left out",
    "softplus for the bound": "the gate had the softplus formula, not that with lower_bound",
    "bound ignored": "lower_bound were -1, whatever is given",
    "A_log left out": "A_log were left out",
    "A_log on g alone": r"exp\(A_log\) scaled the gate alone, not the gate with dt_bias",
    "returns zeros": "were 0",
    "bound -5 in any case": "lower_bound were -5, whatever is given",
    "state in float16": "decays were rounded to float16",
    "a scale of 1 taken for none": r"a scale of 1 were taken for none, and were 1 / sqrt\(K\)",
    "a scale of 0 taken as it is": "a scale of 0 were taken as it is",
    "a scale of 0 taken for 1": "a scale of 0 were taken for 1",
}
