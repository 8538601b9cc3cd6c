"""gla - mistakes that people make in references of gated linear attention."""

STEPS = "gla_recurrent_h4_k64_v128"
CHUNKS = "gla_chunk_varlen_h2_d128"

RETURN = "return output.to(v.dtype), state.clone()"
FORGET = "state = decay[:, t, :, :, None] * state"
LEARN = "state = state + key[:, t, :, :, None] * value[:, t, :, None, :]"
STATE = "state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]"

MUTANTS = [
    (STEPS, "gate left out", FORGET, "pass"),
    (STEPS, "gate without its exponential", "torch.exp(g)", "g"),
    (STEPS, "gate to the base of 2", "torch.exp(g)", "torch.exp2(g)"),
    (STEPS, "gate through a sigmoid", "torch.exp(g)", "torch.sigmoid(g)"),
    (STEPS, "gate of the token before", FORGET, "state = decay[:, max(t - 1, 0), :, :, None] * state"),
    (STEPS, "one gate for all keys", "torch.exp(g)", "torch.exp(g.mean(dim=-1, keepdim=True)).expand_as(g)"),
    (STEPS, "gates in reverse", "torch.exp(g)", "torch.exp(g.flip(-1))"),
    (STEPS, "gate 2 % too strong", "torch.exp(g)", "torch.exp(1.02 * g)"),
    (STEPS, "gate rounded to bfloat16", "torch.exp(g)", "torch.exp(g).bfloat16().float()"),
    (STEPS, "decay after learning", FORGET + "\n        " + LEARN, LEARN + "\n        " + FORGET),
    (STEPS, "state not added to", LEARN, "state = key[:, t, :, :, None] * value[:, t, :, None, :]"),
    (STEPS, "learns what is left of it", LEARN, "state = state + (1 - decay[:, t, :, :, None]) * key[:, t, :, :, None] * value[:, t, :, None, :]"),
    (STEPS, "answers before learning", "query[:, t], state)", "query[:, t], state - key[:, t, :, :, None] * value[:, t, :, None, :])"),
    (STEPS, "key and query swapped", '"bhk,bhkv->bhv", query[:, t], state', '"bhk,bhkv->bhv", key[:, t], state'),
    (STEPS, "scale left out", "scale * torch.einsum", "torch.einsum"),
    (STEPS, "scale 2 % too large", "scale * torch.einsum", "1.02 * scale * torch.einsum"),
    (STEPS, "scale always that of the head", "scale = scale or ", "scale = "),
    (STEPS, "scale of the key too", "key[:, t, :, :, None] *", "scale * key[:, t, :, :, None] *"),
    (STEPS, "keys normalised", "k.float()", "torch.nn.functional.normalize(k.float(), dim=-1)"),
    (STEPS, "heads rolled", "query[:, t], state)", "query[:, t].roll(1, dims=1), state)"),
    (STEPS, "initial state ignored", "state = initial_state\n", "state = torch.zeros_like(initial_state)\n"),
    (STEPS, "initial state of the first sequence for all", "state = initial_state\n", "state = initial_state[:1].expand_as(initial_state)\n"),
    (STEPS, "state in bfloat16", FORGET, FORGET + ".bfloat16().float()"),
    (STEPS, "last token left out", "in range(q.shape[1])", "in range(q.shape[1] - 1)"),
    (STEPS, "tokens in reverse", "in range(q.shape[1])", "in reversed(range(q.shape[1]))"),
    (STEPS, "final state that came in", RETURN, "return output.to(v.dtype), initial_state.clone()"),
    (STEPS, "final state transposed", RETURN, "return output.to(v.dtype), state.transpose(-1, -2).reshape(state.shape)"),
    (STEPS, "updates the state in place", RETURN, "initial_state.copy_(state)\n    " + RETURN),
    (STEPS, "returns float32", RETURN, "return output, state.clone()"),
    (STEPS, "one NaN", RETURN, "output[-1, -1, -1, -1] = torch.nan\n    " + RETURN),
    (CHUNKS, "sums of gates from the token after", "total = gate[:, part].cumsum(dim=1)", "total = gate[:, part].cumsum(dim=1) - gate[:, part]"),
    (CHUNKS, "sums of gates that run on over chunks", "total = gate[:, part].cumsum(dim=1)", "total = gate[:, first : part.stop].cumsum(dim=1)[:, start - first :]"),
    (CHUNKS, "gates factored, which overflows", "torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))", "torch.exp(total)[:, :, None] * torch.exp(-total)[:, None]"),
    (CHUNKS, "mask left out", ").tril()", ")"),
    (CHUNKS, "a token does not see itself", ").tril()", ").tril(diagonal=-1)"),
    (CHUNKS, "nothing from earlier chunks", " + (query[:, part] * torch.exp(total)) @ state", ""),
    (CHUNKS, "earlier chunks do not fade", "(query[:, part] * torch.exp(total)) @ state", "query[:, part] @ state"),
    (CHUNKS, "state does not fade", "torch.exp(last).transpose(1, 2) * state", "state"),
    (CHUNKS, "what is added does not fade", "(torch.exp(last - total) * key[:, part])", "key[:, part]"),
    (CHUNKS, "state not added to", "* state + added", "* state"),
    (CHUNKS, "last chunk left out when it is short", "range(first, end, CHUNK)", "range(first, end - CHUNK + 1, CHUNK)"),
    (CHUNKS, "cu_seqlens ignored: one long sequence", "offsets = cu_seqlens.tolist()", "offsets = [0] * (len(cu_seqlens) - 1) + [len(q)]"),
    (CHUNKS, "chunks that cross sequences", "min(start + CHUNK, end)", "min(start + CHUNK, len(q))"),
    (CHUNKS, "state runs on into the next sequence", STATE, "state = state if n > 0 else final_state[n] if initial_state is None else initial_state[n]"),
    (CHUNKS, "initial state ignored", STATE, "state = final_state[n]"),
    (CHUNKS, "overwrites the offsets", "return output.transpose", "cu_seqlens.zero_()\n    return output.transpose"),
    (STEPS, "scale 5/4 of that of the head in any case", "scale * torch.einsum", "1.25 * q.shape[-1] ** -0.5 * torch.einsum"),
    (STEPS, "state in float16", FORGET, FORGET + ".half().float()"),
    (STEPS, "sequences beyond 64 left out", RETURN, "output[64:] = 0\n    " + RETURN),
    (CHUNKS, "sequences end after 128 tokens", "range(first, end, CHUNK)", "range(first, min(end, first + 128), CHUNK)"),
    (STEPS, "a scale of 0 taken as it is", "scale = scale or q.shape[-1] ** -0.5", "scale = scale"),
    (STEPS, "a scale of 0 taken for 1", "scale = scale or q.shape[-1] ** -0.5", "scale = scale or 1.0"),
]
