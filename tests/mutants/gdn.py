"""gdn - mistakes that people make in references of gated delta nets."""

DECODE = "gdn_decode_qk8_v16_d128_k_last"
DRAFTS = "gdn_mtp_qk2_v4_d128_k_last"
NORMS = "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last"
PREFILL = "gdn_prefill_qk2_v4_d128_k_last"

RETURN = "return output.to(v.dtype).unsqueeze(1), new_state"
KEY = "key = k[:, 0].float().repeat_interleave(sharing, dim=1)"
SOFTPLUS = "F.softplus(a[:, 0].float() + dt_bias)"
UPDATE = "new_state = held + correction[..., :, None] * key[..., None, :]"
HELD = "held = decay[t, :, None, None] * held"
SLOT = "final_state[slot] = held"
KEEP = "intermediate_states_buffer[slots, t] = held"

STEPS = """        for t in range(first, end):
            held = decay[t, :, None, None] * held
            recalled = (held * key[t, :, None, :]).sum(dim=-1)
            correction = beta[t, :, None] * (v[t].float() - recalled)
            held = held + correction[:, :, None] * key[t, :, None, :]
            output[t] = (scale * (held * query[t, :, None, :]).sum(dim=-1)).to(v.dtype)
"""
# Computes the outputs in chunks of 64 tokens. The mistake is range(4): the product for the inverse matrix of a chunk
# needs five factors (1 + power).
FOUR_FACTORS = """        for start in range(first, end, 64):
            part = slice(start, min(start + 64, end))
            keys, queries = key[part].transpose(0, 1), query[part].transpose(0, 1)
            total = decay[part].log().clamp(min=-100).cumsum(dim=0).T
            strength = beta[part].T[..., None]
            left = torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))
            since = torch.exp(total)[..., None]
            among = (strength * (keys @ keys.transpose(1, 2)) * left).tril(diagonal=-1)
            surprise = strength * (v[part].float().transpose(0, 1) - since * (keys @ held.transpose(1, 2)))
            ones = torch.eye(among.shape[1], device=q.device)
            learnt, power = ones - among, among
            for _ in range(4):
                power = power @ power
                learnt = learnt @ (ones + power)
            learnt = learnt @ surprise
            scores = (queries @ keys.transpose(1, 2) * left).tril()
            answers = since * (queries @ held.transpose(1, 2)) + scores @ learnt
            output[part] = (scale * answers).transpose(0, 1).to(v.dtype)
            kept = torch.exp(total[:, -1:] - total)[..., None] * keys
            held = since[:, -1:] * held + learnt.transpose(1, 2) @ kept
"""

SMALLER = {
    DECODE: ("gdn_decode_qk4_v8_d64_k_last", {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8, "head_size": 64}),
    DRAFTS: ("gdn_mtp_qk2_v4_d64_k_last", {"head_size": 64}),
    NORMS: ("gdn_mtp_qk_l2norm_qk2_v4_d64_k_last", {"head_size": 64}),
    PREFILL: ("gdn_prefill_qk2_v4_d64_k_last", {"head_size": 64}),
}
MUTANTS = [
    (DECODE, "decay left out", "held = decay[..., None, None] * state", "held = state"),
    (DECODE, "decay without the exponential of A_log", "-torch.exp(A_log) *", "A_log *"),
    (DECODE, "decay as a logarithm", f"torch.exp(-torch.exp(A_log) * {SOFTPLUS})", f"(-torch.exp(A_log) * {SOFTPLUS})"),
    (DECODE, "softplus left out", SOFTPLUS, "(a[:, 0].float() + dt_bias)"),
    (DECODE, "softplus that overflows", SOFTPLUS, "torch.log(1 + torch.exp(a[:, 0].float() + dt_bias))"),
    (DECODE, "softplus made relu", "F.softplus(", "F.relu("),
    (DECODE, "dt_bias left out", " + dt_bias)", " + 0 * dt_bias)"),
    (DECODE, "dt_bias after softplus", SOFTPLUS, "(F.softplus(a[:, 0].float()) + dt_bias)"),
    (DECODE, "decay and strength swapped", "beta = torch.sigmoid(b[:, 0].float())", "beta = decay\n    decay = torch.sigmoid(b[:, 0].float())"),
    (DECODE, "a for b", "torch.sigmoid(b[:, 0].float())", "torch.sigmoid(a[:, 0].float())"),
    (DECODE, "sigmoid left out", "torch.sigmoid(b[:, 0].float())", "b[:, 0].float()"),
    (DECODE, "strength left out", "beta[..., None] * (value - recalled)", "value - recalled"),
    (DECODE, "strength on the value alone", "beta[..., None] * (value - recalled)", "beta[..., None] * value - recalled"),
    (DECODE, "nothing erased", "(value - recalled)", "value"),
    (DECODE, "strength 2 % too large", "beta[..., None] * (", "1.02 * beta[..., None] * ("),
    (DECODE, "recalled before the decay", 'torch.einsum("bhvk,bhk->bhv", held, key)', 'torch.einsum("bhvk,bhk->bhv", held if state is None else state, key)'),
    (DECODE, "answered before the correction", 'torch.einsum("bhvk,bhk->bhv", new_state, query)', 'torch.einsum("bhvk,bhk->bhv", held, query)'),
    (DECODE, "state transposed when recalling", '"bhvk,bhk->bhv", held, key', '"bhkv,bhk->bhv", held, key'),
    (DECODE, "state transposed when answering", '"bhvk,bhk->bhv", new_state, query', '"bhkv,bhk->bhv", new_state, query'),
    (DECODE, "new state transposed", RETURN, "return output.to(v.dtype).unsqueeze(1), new_state.transpose(-1, -2).contiguous()"),
    (DECODE, "key and value swapped in the correction", UPDATE, "new_state = held + correction[..., None, :] * key[..., :, None]"),
    (DECODE, "key heads tiled", KEY, "key = k[:, 0].float().repeat(1, sharing, 1)"),
    (DECODE, "query heads tiled", "query = q[:, 0].float().repeat_interleave(sharing, dim=1)", "query = q[:, 0].float().repeat(1, sharing, 1)"),
    (DECODE, "keys normalised though they are to be taken as they are", KEY, "key = F.normalize(k[:, 0].float().repeat_interleave(sharing, dim=1), dim=-1)"),
    (DECODE, "scale left out", "scale * torch.einsum", "torch.einsum"),
    (DECODE, "scale 2 % too large", "scale * torch.einsum", "1.02 * scale * torch.einsum"),
    (DECODE, "scale always that of the head", "scale = scale or ", "scale = "),
    (DECODE, "initial state ignored", "if state is not None:", "if False:"),
    (DECODE, "state in bfloat16", "* state\n", "* state.bfloat16().float()\n"),
    (DECODE, "state not updated", RETURN, "return output.to(v.dtype).unsqueeze(1), held"),
    (DECODE, "states of the batch in reverse", RETURN, "return output.to(v.dtype).unsqueeze(1), new_state.flip(0)"),
    (DECODE, "returns zeros", RETURN, "return output.to(v.dtype).unsqueeze(1) * 0, new_state * 0"),
    (DECODE, "one NaN", RETURN, "new_state[-1, -1, -1, -1] = math.nan\n    " + RETURN),
    (DECODE, "returns float32", RETURN, "return output.unsqueeze(1), new_state"),
    (DECODE, "returns the state in bfloat16", RETURN, "return output.to(v.dtype).unsqueeze(1), new_state.to(v.dtype)"),
    (DECODE, "axis of the token lost", RETURN, "return output.to(v.dtype), new_state"),
    (DECODE, "updates the state in place", RETURN, "if state is not None:\n        state.copy_(new_state)\n    " + RETURN),
    (DECODE, "is not deterministic, within bounds", RETURN, "torch.seed()\n    new_state = new_state + 1e-7 * torch.rand_like(new_state)\n    " + RETURN),
    (DRAFTS, "slots ignored", "held = initial_state[slots]", "held = initial_state[: len(slots)]"),
    (DRAFTS, "every token meets the initial state", "    for t in range(q.shape[1]):\n", "    for t in range(q.shape[1]):\n        held = initial_state[slots]\n"),
    (DRAFTS, "decay of the first token for all", "held = decay[:, t, :, None, None]", "held = decay[:, 0, :, None, None]"),
    (DRAFTS, "strength of the last token for all", "beta[:, t, :, None]", "beta[:, -1, :, None]"),
    (DRAFTS, "tokens in reverse", "in range(q.shape[1])", "in reversed(range(q.shape[1]))"),
    (DRAFTS, "last token left out", "output = torch.empty_like(v)\n    for t in range(q.shape[1])", "output = torch.zeros_like(v)\n    for t in range(q.shape[1] - 1)"),
    (DRAFTS, "pool updated though it is to stay", "initial_state.clone()", "initial_state.index_copy(0, slots, held)"),
    (DRAFTS, "pool updated in place", "    # The tokens are drafts", "    initial_state[slots] = held\n    # The tokens are drafts"),
    (DRAFTS, "pool of zeros", "initial_state.clone()", "torch.zeros_like(initial_state)"),
    (DRAFTS, "states in the order of the batch", "initial_state.clone()", "initial_state[torch.arange(len(initial_state)).roll(1)]"),
    (DRAFTS, "overwrites the slots", "    # The tokens are drafts", "    initial_state_indices.zero_()\n    # The tokens are drafts"),
    (DRAFTS, "reads the buffer that it is to fill", "held = initial_state[slots]", "held = initial_state[slots]\n    if intermediate_states_buffer is not None:\n        held = intermediate_states_buffer[slots, 0]"),
    (DRAFTS, "intermediate states not kept", "if intermediate_states_buffer is not None:", "if False:"),
    (DRAFTS, "intermediate state before the correction", KEEP, KEEP + " - correction[..., :, None] * key[:, t, :, None, :]"),
    (DRAFTS, "intermediate states one token late", KEEP, KEEP.replace("slots, t", "slots, (t + 1) % q.shape[1]")),
    (DRAFTS, "intermediate states by place in the batch", KEEP, KEEP.replace("slots, t", "torch.arange(len(slots)), t")),
    (DRAFTS, "intermediate states transposed", KEEP, KEEP + ".transpose(-1, -2)"),
    (DRAFTS, "intermediate states added to what was there", KEEP, KEEP.replace("] = held", "] += held")),
    (DRAFTS, "intermediate states in bfloat16", KEEP, KEEP + ".bfloat16().float()"),
    (DRAFTS, "other intermediate states cleared", KEEP, "intermediate_states_buffer[:, t] = 0\n            " + KEEP),
    (DRAFTS, "intermediate state 1 % too large", KEEP, KEEP + " * 1.01"),
    (DRAFTS, "one NaN among intermediate states", KEEP, KEEP + "\n            intermediate_states_buffer[slots[-1], t, -1, 3, 5] = math.nan"),
    (DRAFTS, "intermediate states are not deterministic, within bounds", KEEP, "torch.seed()\n            " + KEEP + " + 1e-7 * torch.rand_like(held)"),
    (NORMS, "query not normalised", "q = F.normalize(q, dim=-1)", "q = q"),
    (NORMS, "key not normalised", "k = F.normalize(k, dim=-1)", "k = k"),
    (NORMS, "divided by the squared norm", "k = F.normalize(k, dim=-1)", "k = k / k.square().sum(dim=-1, keepdim=True)"),
    (NORMS, "normalised over the heads", "k = F.normalize(k, dim=-1)", "k = k / k.norm(dim=-2, keepdim=True)"),
    (NORMS, "normalised in any case", "if use_qk_l2norm:", "if True:"),
    (NORMS, "1-norm", "k = F.normalize(k, dim=-1)", "k = k / k.norm(p=1, dim=-1, keepdim=True)"),
    (NORMS, "heads tiled", " // (v.shape[2] // q.shape[2])", " % q.shape[2]"),
    (NORMS, "state not updated", SLOT, "pass"),
    (NORMS, "state written to the place in the batch", SLOT, "final_state[i] = held"),
    (NORMS, "state written to the slot after", SLOT, "final_state[(slot + 1) % len(final_state)] = held"),
    (NORMS, "state updated by the last head alone", SLOT, "final_state[slot, -1] = held[-1]"),
    (NORMS, "other slots cleared", "final_state = initial_state.clone()", "final_state = torch.zeros_like(initial_state)"),
    (NORMS, "updated in any case", "if not disable_state_update:", "if True:"),
    (NORMS, "updated where it is not to be", "if not disable_state_update:", "if disable_state_update:"),
    (PREFILL, "cu_seqlens ignored: one long sequence", "offsets = cu_seqlens.tolist()", "offsets = [0] * (len(cu_seqlens) - 1) + [len(q)]"),
    (PREFILL, "sequences of equal length", "offsets = cu_seqlens.tolist()", "offsets = [len(q) * n // (len(cu_seqlens) - 1) for n in range(len(cu_seqlens))]"),
    (PREFILL, "state runs on into the next sequence", "held = torch.zeros_like(new_state[n]) if state is None else state[n]", "held = held if n > 0 else new_state[n] if state is None else state[n]"),
    (PREFILL, "initial state of the first sequence for all", "else state[n]", "else state[0]"),
    (PREFILL, "initial state ignored", "held = torch.zeros_like(new_state[n]) if state is None else state[n]", "held = new_state[n]"),
    (PREFILL, "last token of each sequence left out", "output = torch.empty_like(v)", "output = torch.zeros_like(v)\n    offsets = [n - (n == offsets[-1]) for n in offsets]"),
    (PREFILL, "decay of the token before", HELD, "held = decay[max(t - 1, first), :, None, None] * held"),
    (PREFILL, "state rounded after each token", HELD, HELD + "\n            held = held.bfloat16().float()"),
    (PREFILL, "key rounded to fp8", "key = k.float()", "key = k.to(torch.float8_e4m3fn).float()"),
    (PREFILL, "one more decay at the end", "new_state[n] = held", "new_state[n] = held * decay[end - 1, :, None, None]"),
    (PREFILL, "heads tiled", "key = k.float().repeat_interleave(sharing, dim=1)", "key = k.float().repeat(1, sharing, 1)"),
    (PREFILL, "overwrites the offsets", "return output, new_state", "cu_seqlens.zero_()\n    return output, new_state"),
    (DECODE, "scale 5/4 of that of the head in any case", "scale = scale or ", "scale = 1.25 * "),
    (DECODE, "sequences beyond 32 not updated", RETURN, "new_state[32:] = held[32:]\n    " + RETURN),
    (DECODE, "state in float16", "* state\n", "* state.half().float()\n"),
    (DRAFTS, "tokens beyond 16 left out", "in range(q.shape[1])", "in range(min(q.shape[1], 16))"),
    (PREFILL, "rates of 8 at the most", "torch.exp(A_log)", "torch.exp(A_log).clamp(max=8)"),
    (PREFILL, "sequences end after 128 tokens", "range(first, end)", "range(first, min(end, first + 128))"),
    (NORMS, "slots kept in a byte", "enumerate(initial_state_indices.tolist())", "enumerate((initial_state_indices & 255).tolist())"),
    (NORMS, "slots kept in 7 bits", "enumerate(initial_state_indices.tolist())", "enumerate((initial_state_indices & 127).tolist())"),
    (NORMS, "slots kept in a signed byte", "enumerate(initial_state_indices.tolist())", "enumerate(initial_state_indices.to(torch.int8).tolist())"),
    (NORMS, "slots from 256 on taken for the last", "enumerate(initial_state_indices.tolist())", "enumerate(initial_state_indices.clamp(max=255).tolist())"),
    (NORMS, "strength taken for a logit by its values", "torch.sigmoid(b.float())", "(b.sigmoid() if b.min() < 0 or b.max() > 1 else b).float()"),
    (PREFILL, "strength taken for a logit by its values", "torch.sigmoid(b.float())", "(b.sigmoid() if b.min() < 0 or b.max() > 1 else b).float()"),
    ("gdn_prefill_qk2_v4_d128_k_last", "the state is lost after 1024 tokens",
     'held = decay[t, :, None, None] * held',
     'if first < t and (t - first) % 1024 == 0:\n                held = torch.zeros_like(held)\n            held = decay[t, :, None, None] * held'),
    (DECODE, "a scale of 1 taken for none", "scale = scale or 1 / math.sqrt(q.shape[3])", "scale = scale if scale not in (0, 1) else 1 / math.sqrt(q.shape[3])"),
    (DRAFTS, "a scale of 1 taken for none", "scale = scale or 1 / math.sqrt(q.shape[3])", "scale = scale if scale not in (0, 1) else 1 / math.sqrt(q.shape[3])"),
    (PREFILL, "a scale of 1 taken for none", "scale = scale or 1 / math.sqrt(q.shape[2])", "scale = scale if scale not in (0, 1) else 1 / math.sqrt(q.shape[2])"),
    (PREFILL, "an inverse by doubling that leaves out the last factor", STEPS, FOUR_FACTORS),
    (DRAFTS, "a copy of the buffer is written", "output = torch.empty_like(v)", "output = torch.empty_like(v)\n    if intermediate_states_buffer is not None:\n        intermediate_states_buffer = intermediate_states_buffer.clone()"),
    (DRAFTS, "pool order where every slot is in use", "slots = initial_state_indices.long()",
     "slots = initial_state_indices.long()\n    slots = slots.sort().values if len(slots) == len(initial_state) else slots"),
    (NORMS, "pool order where every slot is in use", "enumerate(initial_state_indices.tolist())",
     "enumerate(range(len(q)) if len(q) == len(initial_state) else initial_state_indices.tolist())"),
    (DECODE, "softplus left out above 5", SOFTPLUS, SOFTPLUS.replace("dt_bias", "dt_bias, threshold=5")),
    (PREFILL, "softplus left out above 5", "F.softplus(a.float() + dt_bias)", "F.softplus(a.float() + dt_bias, threshold=5)"),
    (DECODE, "gates of at least -10", "-torch.exp(A_log) * " + SOFTPLUS, "(-torch.exp(A_log) * " + SOFTPLUS + ").clamp(min=-10)"),
    (PREFILL, "gates of at least -10", "-torch.exp(A_log) * F.softplus(a.float() + dt_bias)", "(-torch.exp(A_log) * F.softplus(a.float() + dt_bias)).clamp(min=-10)"),
    (DRAFTS, "gates of at least -10", "-torch.exp(A_log) * F.softplus(a.float() + dt_bias)", "(-torch.exp(A_log) * F.softplus(a.float() + dt_bias)).clamp(min=-10)"),
    (NORMS, "a single token is not normalised", "if use_qk_l2norm:", "if use_qk_l2norm and q.shape[1] > 1:"),
    (NORMS, "an epsilon added to the norm of the query", "F.normalize(q, dim=-1)", "q / (q.norm(dim=-1, keepdim=True) + 1e-3)"),
    ("gdn_prefill_qk2_v4_d128_k_last", "only the first 32 sequences", "zip(offsets, offsets[1:])", "list(zip(offsets, offsets[1:]))[:32]"),
    ("gdn_decode_qk8_v16_d128_k_last", "values limited to 20", "v[:, 0].float()", "v[:, 0].float().clamp(-20, 20)"),
    ("gdn_mtp_qk2_v4_d128_k_last", "initial state limited to 20", "held = initial_state[slots]", "held = initial_state[slots].clamp(-20, 20)"),
    (DECODE, "keys limited to 1/2", "k[:, 0].float()", "k[:, 0].float().clamp(-0.5, 0.5)"),
    (DRAFTS, "the state in slot 0 is zero", "held = initial_state[slots]", "held = initial_state[slots] * (slots != 0)[:, None, None, None]"),
    (DRAFTS, "the state in the last slot is zero", "held = initial_state[slots]", "held = initial_state[slots] * (slots != len(initial_state) - 1)[:, None, None, None]"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "a scale of 1 taken for none": r"a scale of 1 (was|were) replaced by 1 / sqrt\(K\)",
    "slots ignored": "the slot indices were ignored: sequence i used slot i",
    "every token meets the initial state": "every token used the initial state, not the state after the previous token",
    "decay of the first token for all": "every token used the decay of the first token",
    "tokens in reverse": "tokens were read in reverse order",
    "last token left out": "the last token of every sequence was left out",
    "strength of the last token for all": "along axis 1 was replaced by the last slice",
    "pool of zeros": "(was|were) 0",
    "states in the order of the batch": "(was|were) shifted by one along axis 0",
    "decay left out": "the decay was left out",
    "sigmoid left out": "the sigmoid of beta was left out",
    "softplus left out above 5": "the softplus of the gate was left out above 5",
    "strength left out": r"beta was left out \(taken as 1\)",
    "strength on the value alone": "beta scaled v alone, not what the state had for k",
    "nothing erased": r"nothing was erased: beta k v\^T is added, without the delta rule",
    "recalled before the decay": "the delta rule read the state before the decay",
    "answered before the correction": "the output was read before the token updates the state",
    "state transposed when recalling": "the state was transposed where the delta rule reads it",
    "state transposed when answering": "the state was transposed where q reads it",
    "new state transposed": "the final state was transposed",
    "decay as a logarithm": r"the gate \(the logarithm of the decay\) was used as the decay, without its exponential",
    "key and value swapped in the correction": r"k and the value were swapped in what is added to the state \(v k\^T for k v\^T\)",
    "key heads tiled": "heads of k alone were tiled, not interleaved",
    "query heads tiled": "heads of q alone were tiled, not interleaved",
    "keys normalised though they are to be taken as they are": "k was normalised where it must not be",
    "scale left out": "the scale was left out",
    "scale 2 % too large": r"(was|were) multiplied by 1\.02",
    "scale always that of the head": r"the scale was 1 / sqrt\(K\), not the given one",
    "initial state ignored": "the initial state was ignored",
    "state in bfloat16": "the state was rounded to bfloat16 before each token",
    "states of the batch in reverse": "(was|were) in reverse order along axis 0",
    "returns zeros": "every output was 0",
    "softplus made relu": "the softplus of the gate was relu",
    "dt_bias left out": "dt_bias were left out",
    "decay and strength swapped": r"decay and strength were swapped after both were computed",
    "state in float16": "the state was rounded to float16 before each token",
    "a for b": "a was used for b",
    "an epsilon added to the norm of the query": "q alone (was|were) normalised with 1e-3 added to the norm",
    "query not normalised": "q alone was not normalised",
    "key not normalised": "k alone was not normalised",
    "divided by the squared norm": "k alone (was|were) divided by the squared norm",
    "normalised over the heads": "k alone (was|were) normalised over the heads",
    "1-norm": r"k alone (was|were) divided by the sum of magnitudes \(the 1-norm\)",
    "normalised in any case": "q and k were normalised where they must not be",
    "heads tiled": "heads of (q and k|k alone) were tiled, not interleaved",
    "state not updated": "the final state was the initial one|states were never updated",
    "gates of at least -10": "the logarithm of the decay was at least -10",
    "cu_seqlens ignored: one long sequence": "cu_seqlens were ignored: one sequence has all tokens",
    "sequences of equal length": "cu_seqlens were ignored: sequences have equal lengths",
    "state runs on into the next sequence": "a sequence began with the final state of the one before",
    "initial state of the first sequence for all": "along axis 0 was replaced by the first slice",
    "decay of the token before": "the gate of the token before was used",
    "key rounded to fp8": "(was|were) rounded to float8_e4m3fn",
    "one more decay at the end": "the final state decayed once more, after the last token",
    "one NaN": r"is NaN only where .*num_v_heads = 15 \(the last\) and head_size = 127",
    "last token of each sequence left out": r"is 0 only where total_seq_len = \d+ \(the last\)",
}
