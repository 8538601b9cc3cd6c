"""simple_gla - mistakes that people make in references of linear attention with one gate a head."""

CHUNKS = "simple_gla_chunk_h8_d64"
GAMMA = "simple_gla_varlen_gamma_h4_k64_v128"
PAIRS = "simple_gla_parallel_h4_d64"

TOTAL = "total = gate[:, :, part].cumsum(dim=-1)"
LEFT = "(total[..., :, None] - total[..., None, :]).clamp(max=0)"
LEARN = "state = decay * state + key[t, :, :, None] * value[t, :, None, :]"

MUTANTS = [
    (CHUNKS, "gate left out", TOTAL, "total = 0 * gate[:, :, part]"),
    (CHUNKS, "sums of gates left out", TOTAL, "total = gate[:, :, part]"),
    (CHUNKS, "sums of gates from the token after", TOTAL, TOTAL + " - gate[:, :, part]"),
    (CHUNKS, "sums of gates in float16", TOTAL, "total = gate[:, :, part].cumsum(dim=-1).half().float()"),
    (CHUNKS, "gate of the head after", TOTAL, "total = gate.roll(-1, dims=1)[:, :, part].cumsum(dim=-1)"),
    (CHUNKS, "gate to the base of 2", f"torch.exp({LEFT})", f"torch.exp2({LEFT})"),
    (CHUNKS, "gates factored, which overflows", f"torch.exp({LEFT})", "torch.exp(total)[..., :, None] * torch.exp(-total)[..., None, :]"),
    (CHUNKS, "gates between tokens left out", "key[:, :, part].transpose(-1, -2) * left)", "key[:, :, part].transpose(-1, -2))"),
    (CHUNKS, "mask left out", ".tril()", ""),
    (CHUNKS, "a token does not see itself", ".tril()", ".tril(diagonal=-1)"),
    (CHUNKS, "nothing from earlier chunks", "@ value[:, :, part] + earlier", "@ value[:, :, part]"),
    (CHUNKS, "earlier chunks do not fade", "(query[:, :, part] * torch.exp(total)[..., None]) @ state", "query[:, :, part] @ state"),
    (CHUNKS, "state does not fade", "torch.exp(last)[..., None] * state", "state"),
    (CHUNKS, "what is added does not fade", "torch.exp(last - total)[..., None] * key", "key"),
    (CHUNKS, "each chunk begins anew", "state = torch.exp(last)[..., None] * state + ", "state = "),
    (CHUNKS, "scale left out", " * q.shape[-1] ** -0.5", ""),
    (CHUNKS, "scale by the size, not its root", "q.shape[-1] ** -0.5", "q.shape[-1] ** -1"),
    (CHUNKS, "last chunk left out when it is short", "output = torch.empty_like(value)\n    for start in range(0, q.shape[1], CHUNK)", "output = torch.zeros_like(value)\n    for start in range(0, q.shape[1] - CHUNK + 1, CHUNK)"),
    (CHUNKS, "returns bfloat16", "to(v.dtype), state", "bfloat16(), state"),
    (CHUNKS, "returns the state in float16", "to(v.dtype), state", "to(v.dtype), state.half()"),
    (CHUNKS, "heads and tokens swapped", "return output.transpose(1, 2).to", "return output.reshape(v.shape).to"),
    (GAMMA, "gamma without its exponential", "torch.exp(g_gamma)", "g_gamma"),
    (GAMMA, "gamma of the head after", "torch.exp(g_gamma)", "torch.exp(g_gamma).roll(-1)"),
    (GAMMA, "gamma of the first head for all", "torch.exp(g_gamma)", "torch.exp(g_gamma[0]).expand_as(g_gamma)"),
    (GAMMA, "gamma taken twice", "torch.exp(g_gamma)", "torch.exp(2 * g_gamma)"),
    (GAMMA, "gamma by the token's place", LEARN, "state = decay ** (t - first) * state + key[t, :, :, None] * value[t, :, None, :]"),
    (GAMMA, "gamma on what is learnt", LEARN, "state = decay * (state + key[t, :, :, None] * value[t, :, None, :])"),
    (GAMMA, "state not added to", LEARN, "state = key[t, :, :, None] * value[t, :, None, :]"),
    (GAMMA, "scale always that of the head", "scale = scale or ", "scale = "),
    (GAMMA, "cu_seqlens ignored: sequences of equal length", "offsets = cu_seqlens.tolist()", "offsets = [len(q) * n // (len(cu_seqlens) - 1) for n in range(len(cu_seqlens))]"),
    (GAMMA, "initial state ignored", "state = initial_state[n]", "state = torch.zeros_like(initial_state[n])"),
    (GAMMA, "initial state of the first sequence for all", "state = initial_state[n]", "state = initial_state[0]"),
    (GAMMA, "state runs on into the next sequence", "state = initial_state[n]", "state = initial_state[n] if n == 0 else state"),
    (GAMMA, "last state of the last sequence alone", "final_state[n] = state", "final_state[:] = state"),
    (GAMMA, "states in reverse", "return output.to(v.dtype), final_state", "return output.to(v.dtype), final_state.flip(0)"),
    (GAMMA, "one token too few", "range(first, end)", "range(first, max(end - 1, first + 1))"),
    (PAIRS, "gate left out", " * left", ""),
    (PAIRS, "mask of 1 beyond the diagonal", ".clamp(max=0)).tril()", ".clamp(max=0)).tril(diagonal=1)"),
    (PAIRS, "softmax over the scores", "scores * left", "scores.softmax(dim=-1) * left"),
    (PAIRS, "sums of gates in bfloat16", "g.float().cumsum(dim=1)", "g.cumsum(dim=1).float()"),
    (PAIRS, "gates in reverse", "g.float().cumsum(dim=1)", "g.float().flip(1).cumsum(dim=1).flip(1)"),
    (PAIRS, "scores transposed", '"bhij,bjhd->bihd"', '"bhji,bjhd->bihd"'),
    (PAIRS, "returns zeros", ".to(v.dtype)", ".to(v.dtype) * 0"),
    (GAMMA, "scale 5/4 of that of the head in any case", "scale = scale or ", "scale = 1.25 * "),
    (GAMMA, "state in float16", LEARN, "state = decay * state.half().float() + key[t, :, :, None] * value[t, :, None, :]"),
    (GAMMA, "sequences end after 128 tokens", "range(first, end)", "range(first, min(end, first + 128))"),
    (PAIRS, "sequences beyond 128 left out", ".to(v.dtype)", ".to(v.dtype) * (torch.arange(len(v), device=v.device) < 128)[:, None, None, None]"),
    (GAMMA, "a scale of 0 taken as it is", "scale = scale or q.shape[-1] ** -0.5", "scale = scale"),
    (GAMMA, "a scale of 0 taken for 1", "scale = scale or q.shape[-1] ** -0.5", "scale = scale or 1.0"),
]
