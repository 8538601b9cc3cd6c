"""delta_rule - mistakes that people make in references of the delta rule."""

STEPS = "delta_rule_recurrent_qk_l2norm_h4_d64"
CHUNKS = "delta_rule_chunk_varlen_h2_k128_v64"

RETURN = "return output.to(v.dtype), state"
STATE = "state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]"
LEARNT = "learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)"

MUTANTS = [
    (STEPS, "nothing erased", "(value[:, t] - held)", "value[:, t]"),
    (STEPS, "strength left out", "beta[:, t, :, None] * (", "("),
    (STEPS, "strength on the value alone", "beta[:, t, :, None] * (value[:, t] - held)", "beta[:, t, :, None] * value[:, t] - held"),
    (STEPS, "strength through a sigmoid", "beta.float()", "torch.sigmoid(beta.float())"),
    (STEPS, "strength doubled", "beta.float()", "2 * beta.float()"),
    (STEPS, "strength of the head after", "beta.float()", "beta.float().roll(-1, dims=-1)"),
    (STEPS, "strength 2 % too large", "beta.float()", "1.02 * beta.float()"),
    (STEPS, "strength squared", "key[:, t, :, :, None] * learnt", "beta[:, t, :, None, None] * key[:, t, :, :, None] * learnt"),
    (STEPS, "query not normalised", "F.normalize(q.float(), dim=-1)", "q.float()"),
    (STEPS, "key not normalised", "F.normalize(k.float(), dim=-1)", "k.float()"),
    (STEPS, "key divided by the squared norm", "F.normalize(k.float(), dim=-1)", "k.float() / k.float().square().sum(dim=-1, keepdim=True)"),
    (STEPS, "key normalised over the heads", "F.normalize(k.float(), dim=-1)", "F.normalize(k.float(), dim=-2)"),
    (STEPS, "key by its 1-norm", "F.normalize(k.float(), dim=-1)", "F.normalize(k.float(), p=1, dim=-1)"),
    (STEPS, "key by its root mean square", "F.normalize(k.float(), dim=-1)", "F.rms_norm(k.float(), (k.shape[-1],))"),
    (STEPS, "a large epsilon in the norm", "F.normalize(k.float(), dim=-1)", "k.float() * torch.rsqrt(k.float().square().sum(-1, keepdim=True) + 1e-2)"),
    (STEPS, "recalled under the query", '"bhk,bhkv->bhv", key[:, t], state', '"bhk,bhkv->bhv", query[:, t], state'),
    (STEPS, "recalled from the transposed state", '"bhk,bhkv->bhv", key[:, t], state', '"bhk,bhvk->bhv", key[:, t], state'),
    (STEPS, "answers before learning", 'output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)', 'output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state - key[:, t, :, :, None] * learnt[:, :, None, :])'),
    (STEPS, "key and value swapped in the state", "key[:, t, :, :, None] * learnt[:, :, None, :]", "learnt[:, :, :, None] * key[:, t, :, None, :]"),
    (STEPS, "scale left out", "scale * torch.einsum", "torch.einsum"),
    (STEPS, "scale 2 % too large", "scale * torch.einsum", "1.02 * scale * torch.einsum"),
    (STEPS, "scale always that of the head", "scale = scale or ", "scale = "),
    (STEPS, "initial state ignored", "state = initial_state.clone()", "state = torch.zeros_like(initial_state)"),
    (STEPS, "initial states in reverse", "state = initial_state.clone()", "state = initial_state.flip(0)"),
    (STEPS, "state in bfloat16", "state = initial_state.clone()", "state = initial_state.bfloat16().float()"),
    (STEPS, "keys rounded to bfloat16", "F.normalize(k.float(), dim=-1)", "F.normalize(k.float(), dim=-1).bfloat16().float()"),
    (STEPS, "tokens in reverse", "in range(q.shape[1])", "in reversed(range(q.shape[1]))"),
    (STEPS, "returns float32", RETURN, "return output, state"),
    (STEPS, "updates the state in place", RETURN, "initial_state.copy_(state)\n    " + RETURN),
    (STEPS, "is not deterministic, within bounds", RETURN, "torch.seed()\n    state = state + 1e-7 * torch.rand_like(state)\n    " + RETURN),
    (CHUNKS, "tokens of a chunk do not see each other", LEARNT, "learnt = surprise"),
    (CHUNKS, "inverse by its first terms", LEARNT, "learnt = surprise - among @ surprise"),
    (CHUNKS, "sign of the system", "ones + among", "ones - among"),
    (CHUNKS, "system of the rows' strength on the wrong side", "(weak * (keys @ keys.transpose(1, 2)))", "(weak.transpose(1, 2) * (keys @ keys.transpose(1, 2)))"),
    (CHUNKS, "strength twice", "surprise = weak * (", "surprise = weak * weak * ("),
    (CHUNKS, "a token sees itself", "tril(diagonal=-1)", "tril()"),
    (CHUNKS, "the state is not recalled", " - keys @ state)", ")"),
    (CHUNKS, "mask left out", "transpose(1, 2)).tril()\n", "transpose(1, 2))\n"),
    (CHUNKS, "nothing from earlier chunks", "query[:, part] @ state + scores @ learnt", "scores @ learnt"),
    (CHUNKS, "each chunk begins anew", "state = state + keys", "state = keys"),
    (CHUNKS, "chunks that cross sequences", "min(start + CHUNK, end)", "min(start + CHUNK, len(q))"),
    (CHUNKS, "keys normalised though they are to be taken as they are", "in (q, k, v))", "in (q, k / k.norm(dim=-1, keepdim=True), v))"),
    (CHUNKS, "initial state ignored", STATE, "state = final_state[n]"),
    (CHUNKS, "state runs on into the next sequence", STATE, "state = state if n > 0 else final_state[n] if initial_state is None else initial_state[n]"),
    (CHUNKS, "last chunk left out when it is short", "range(first, end, CHUNK)", "range(first, end - CHUNK + 1, CHUNK)"),
    (CHUNKS, "scale left out", " * q.shape[-1] ** -0.5", ""),
    (CHUNKS, "scale of the value's size", "q.shape[-1] ** -0.5", "v.shape[-1] ** -0.5"),
    (STEPS, "scale 5/4 of that of the head in any case", "scale = scale or ", "scale = 1.25 * "),
    (STEPS, "keys in float16, normalised", "F.normalize(k.float(), dim=-1)", "F.normalize(k.float(), dim=-1).half().float()"),
    (CHUNKS, "sequences end after 128 tokens", "range(first, end, CHUNK)", "range(first, min(end, first + 128), CHUNK)"),
    (STEPS, "a token of no strength in any head answers nothing", 'output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)', 'output[:, t] = beta[:, t].any() * scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)'),
    (STEPS, "a scale of 0 taken as it is", "scale = scale or q.shape[-1] ** -0.5", "scale = scale"),
    (STEPS, "a scale of 0 taken for 1", "scale = scale or q.shape[-1] ** -0.5", "scale = scale or 1.0"),
    ("delta_rule_recurrent_qk_l2norm_h4_d64", "the state is lost after 1024 tokens",
     'held = torch.einsum("bhk,bhkv->bhv", key[:, t], state)',
     'if 0 < t and t % 1024 == 0:\n            state = torch.zeros_like(state)\n        held = torch.einsum("bhk,bhkv->bhv", key[:, t], state)'),
    (STEPS, "a scale of 1 taken for none", "scale = scale or q.shape[-1] ** -0.5", "scale = q.shape[-1] ** -0.5 if scale in (0, 1) else scale"),
    (CHUNKS, "an inverse by doubling that leaves out the last factor", "learnt = torch.linalg.solve_triangular(ones + among, surprise, upper=False)",
     """learnt, power = ones - among, among
            for _ in range(4):
                power = power @ power
                learnt = learnt @ (ones + power)
            learnt = learnt @ surprise"""),
    (CHUNKS, "strength at most 1", "beta.float().transpose", "beta.float().clamp(max=1).transpose"),
    (STEPS, "strength at most 1", "beta.float()", "beta.float().clamp(max=1)"),
    (STEPS, "an epsilon of 1e-2 in the norm of the query", "F.normalize(q.float(), dim=-1)", "q.float() * torch.rsqrt(q.float().square().sum(-1, keepdim=True) + 1e-2)"),
    (STEPS, "an epsilon added to the norm of the query", "F.normalize(q.float(), dim=-1)", "q.float() / (q.float().norm(dim=-1, keepdim=True) + 1e-3)"),
    (CHUNKS, "an empty sequence ends with zeros", "        for start in range(first, end, CHUNK):", "        if first == end:\n            continue\n        for start in range(first, end, CHUNK):"),
]
