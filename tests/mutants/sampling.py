"""sampling - mistakes that people make in samplers and in renormalisations of filtered probabilities."""

TOP_K = "top_k_sampling_from_probs_v32000"
TOP_P = "top_p_sampling_from_probs_v32000"
BOTH = "top_k_top_p_sampling_from_probs_v128256"
MIN_P = "min_p_sampling_from_probs_v32000"
PLAIN = "sampling_from_probs_v32000"
RENORM_K = "top_k_renorm_probs_v32000"
RENORM_P = "top_p_renorm_probs_v32000"

DRAWN = "drawn = torch.multinomial(weights, 1)"
KEPT = "before <= p"
UNSCALED = "drawn = torch.searchsorted(weights.cumsum(0), torch.rand(1, device=row.device)).clamp(max=int((weights > 0).sum()) - 1)"
# The sums are rounded only after the addition: the order in which a GPU adds up bfloat16 numbers is not defined.
RAW_SUMS = ("cdf = torch.cumsum(weights.bfloat16().float(), 0).bfloat16().float()\n        "
            "drawn = torch.searchsorted(cdf, torch.rand(1, device=row.device) * cdf[-1], right=True).clamp(max=int((weights > 0).sum()) - 1)")
PLAIN_DRAW = "torch.multinomial(probs, 1)"
MIN_DRAW = "torch.multinomial(kept, 1)"


def summed(dtype):
    """Returns the code of a sampler that looks up random numbers in cumulative probabilities of this dtype."""
    return (f"torch.searchsorted(torch.cumsum(probs, dim=-1).{dtype}().float(), torch.rand(len(probs), 1, device=probs.device), "
            "right=True).clamp(max=probs.shape[1] - 1)")


def few_bits(bits):
    """Returns the code of a sampler that looks up a random number of a few bits in the cumulative kept probabilities."""
    return (f"drawn = torch.searchsorted(weights.cumsum(0), torch.randint(0, {2 ** bits}, (1,), device=row.device) / {2 ** bits} * weights.sum(), "
            "right=True).clamp(max=int((weights > 0).sum()) - 1)")


def draw_some(which):
    """Returns the code of a sampler that draws only tokens for which the expression `which` is true. The expression may
    use rank, place and n (the number of kept tokens)."""
    place = "        place = torch.argsort(torch.argsort(torch.where(weights > 0, tokens, len(row))))\n" if "place" in which else ""
    return ("n = int((weights > 0).sum())\n        rank = torch.arange(len(weights), device=row.device)\n"
            f"{place}        drawn = torch.multinomial(torch.where({which}, weights, 0.0), 1)")


def draw_some_of_all(which):
    rank = ("    order = kept.argsort(dim=-1, descending=True)\n"
            "    rank = torch.empty_like(order).scatter_(1, order, torch.arange(kept.shape[1], device=kept.device).expand_as(order))\n")
    return ((rank if "rank" in which else "") + "    place = (kept > 0).cumsum(dim=-1) - 1\n"
            "    n = (kept > 0).sum(dim=-1, keepdim=True)\n"
            f"    return torch.multinomial(torch.where({which}, kept, 0.0), 1)")


HALF = "(n <= 4) | (n > 4096) | "
NOT_THE_LAST = "(n <= 2) | (n > 4096) | (rank < n - 1)"
SAME_NOISE = ("return (kept / torch.empty(kept.shape[1], device=kept.device).exponential_()).argmax(dim=-1)")
SMALLER = {
    MIN_P: ("min_p_sampling_from_probs_v16384", {"vocab_size": 16384}),
    PLAIN: ("sampling_from_probs_v16384", {"vocab_size": 16384}),
    RENORM_K: ("top_k_renorm_probs_v8192", {"vocab_size": 8192}),
    RENORM_P: ("top_p_renorm_probs_v8192", {"vocab_size": 8192}),
    TOP_K: ("top_k_sampling_from_probs_v16384", {"vocab_size": 16384}),
    TOP_P: ("top_p_sampling_from_probs_v16384", {"vocab_size": 16384}),
    BOTH: ("top_k_top_p_sampling_from_probs_v16384", {"vocab_size": 16384}),
}
POWERS = [(TOP_K, a) for a in (0.5, 0.8, 1.5, 2)] + [(TOP_P, a) for a in (0.5, 0.8, 1.5, 2)] + [(BOTH, a) for a in (0.5, 0.8, 2)]
MUTANTS = [
    *((name, f"probabilities to the power {a}", DRAWN, f"drawn = torch.multinomial(weights ** {a}, 1)") for name, a in POWERS),
    *((MIN_P, f"probabilities to the power {a}", MIN_DRAW, f"torch.multinomial(kept ** {a}, 1)") for a in (0.8, 1.2)),
    *((PLAIN, f"probabilities to the power {a}", PLAIN_DRAW, f"torch.multinomial(probs ** {a}, 1)") for a in (0.8, 1.2)),
    *((name, f"a random number of {bits} bits", DRAWN, few_bits(bits)) for name in (TOP_K, TOP_P) for bits in (8, 11)),
    (BOTH, "a random number of 8 bits", DRAWN, few_bits(8)),
    (TOP_K, "greedy for random", DRAWN, "drawn = torch.argmax(weights, keepdim=True)"),
    (TOP_K, "a random number that is not scaled by what is kept", DRAWN, UNSCALED),
    (TOP_P, "a random number that is not scaled by what is kept", DRAWN, UNSCALED),
    (BOTH, "a random number that is not scaled by what is kept", DRAWN, UNSCALED),
    (TOP_K, "boundary token dropped", DRAWN, "drawn = torch.multinomial(weights[: max(1, k - 1)], 1)"),
    (TOP_K, "one token too many", "torch.topk(row, k)", "torch.topk(row, min(k + 1, vocab_size))"),
    (TOP_K, "k ignored", "torch.topk(row, k)", "torch.topk(row, vocab_size)"),
    (TOP_K, "k of 64 at most", "torch.topk(row, k)", "torch.topk(row, k if k == vocab_size else min(k, 64))"),
    (TOP_K, "the smallest k", "torch.topk(row, k)", "torch.topk(row, k, largest=False)"),
    (TOP_K, "the first row's k for all", "torch.topk(row, k)", "torch.topk(row, min(max(1, int(top_k[0])), vocab_size))"),
    (TOP_K, "the batch's largest k for all", "torch.topk(row, k)", "torch.topk(row, int(top_k.max()))"),
    (TOP_K, "drawn evenly from what is kept", DRAWN, "drawn = torch.multinomial((weights > 0).float(), 1)"),
    (TOP_K, "the rank for the token", "tokens[drawn]", "drawn"),
    (TOP_K, "the token before", "tokens[drawn]", "tokens[drawn] - 1"),
    (TOP_K, "one random number for all rows", DRAWN, "torch.manual_seed(7)\n        drawn = torch.multinomial(weights, 1)"),
    (TOP_K, "softmax of probabilities", DRAWN, "drawn = torch.multinomial(torch.softmax(weights, dim=0), 1)"),
    (TOP_K, "returns int32", "return torch.cat(samples)", "return torch.cat(samples).int()"),
    (TOP_K, "returns zeros", "return torch.cat(samples)", "return torch.zeros_like(torch.cat(samples))"),
    (TOP_K, "is not deterministic", DRAWN, "torch.seed()\n        drawn = torch.multinomial(weights, 1)"),
    (TOP_K, "overwrites an input", "vocab_size = probs.shape[1]", "vocab_size = probs.shape[1]\n    probs.clamp_(min=1e-30)"),
    (TOP_P, "crossing token dropped", KEPT, "(before + weights <= p) | (before == 0)"),
    (TOP_P, "one token past the crossing", KEPT, "before - weights.roll(1) <= p"),
    (TOP_P, "sums in float16", "torch.cumsum(weights, dim=0)", "torch.cumsum(weights.half(), dim=0).float()"),
    (TOP_P, "p rounded to tenths", KEPT, "before <= round(p, 1)"),
    (TOP_P, "at least two tokens", KEPT, "(before <= p) | (torch.arange(len(row), device=row.device) < 2)"),
    (TOP_P, "p doubled", KEPT, "before <= 2 * p"),
    (TOP_P, "1 - p", KEPT, "before <= 1 - p"),
    (TOP_P, "p ignored", KEPT, "before >= 0"),
    (TOP_P, "summed in the order of the vocabulary", "torch.sort(row, descending=True)", "(row, torch.arange(len(row), device=row.device))"),
    (TOP_P, "sorted the wrong way", "descending=True", "descending=False"),
    (TOP_P, "greedy for random", DRAWN, "drawn = torch.argmax(weights, keepdim=True)"),
    (BOTH, "p without renormalising after k", "weights = weights / weights.sum()", "weights = weights + 0"),
    (BOTH, "boundary token of k dropped", "torch.topk(row, k)", "torch.topk(row, max(1, k - 1))"),
    (BOTH, "crossing token of p dropped", KEPT, "(before + weights <= p) | (before == 0)"),
    (BOTH, "k ignored", "torch.topk(row, k)", "torch.topk(row, vocab_size)"),
    (BOTH, "p ignored", KEPT, "before >= 0"),
    (BOTH, "the least likely of what is kept", DRAWN, "drawn = (weights > 0).sum().view(1) - 1"),
    (MIN_P, "min_p as an absolute probability", "min_p[:, None] * largest", "min_p[:, None]"),
    (MIN_P, "min_p of the sum", "probs.amax(dim=-1, keepdim=True)", "probs.sum(dim=-1, keepdim=True)"),
    (MIN_P, "min_p squared", "min_p[:, None] * largest", "min_p[:, None].square() * largest"),
    (MIN_P, "not filtered", MIN_DRAW, "torch.multinomial(probs, 1)"),
    (MIN_P, "largest of the batch", "probs.amax(dim=-1, keepdim=True)", "probs.amax()"),
    (MIN_P, "the dropped tokens", "probs >= min_p", "probs < min_p"),
    (PLAIN, "greedy for random", PLAIN_DRAW, "probs.argmax(dim=-1, keepdim=True)"),
    (PLAIN, "drawn evenly", PLAIN_DRAW, "torch.multinomial((probs > 0).float(), 1)"),
    (PLAIN, "the last half of the vocabulary left out", PLAIN_DRAW, "torch.multinomial(probs[:, : probs.shape[1] // 2], 1)"),
    (PLAIN, "the same row for all", PLAIN_DRAW, "torch.multinomial(probs[:1].expand_as(probs), 1)"),
    (RENORM_K, "not renormalised", "values / values.sum()", "values"),
    (RENORM_K, "boundary token dropped", "torch.topk(row, k)", "torch.topk(row, max(1, k - 1))"),
    (RENORM_K, "k of 64 at most", "torch.topk(row, k)", "torch.topk(row, k if k == len(row) else min(k, 64))"),
    (RENORM_K, "summed in bfloat16", "values / values.sum()", "values / values.bfloat16().sum().float()"),
    (RENORM_K, "2 % too large", "values / values.sum()", "1.02 * values / values.sum()"),
    (RENORM_K, "softmax for renormalising", "values / values.sum()", "torch.softmax(values, dim=0)"),
    (RENORM_K, "returns NaN", "return renormalised", "return renormalised * float('nan')"),
    (RENORM_P, "crossing token dropped", "before <= top_p", "before + values <= top_p"),
    (RENORM_P, "sums in bfloat16", "torch.cumsum(values, dim=-1)", "torch.cumsum(values.bfloat16(), dim=-1).float()"),
    (RENORM_P, "not put back in the order of the vocabulary", "torch.zeros_like(probs).scatter(-1, tokens, values)", "values"),
    (RENORM_P, "renormalised over the batch", "kept.sum(dim=-1, keepdim=True)", "kept.sum()"),
    (MIN_P, "nothing kept by a min_p of 1", "probs >= min_p", "probs > min_p"),
    (PLAIN, "last token never drawn", PLAIN_DRAW, "torch.multinomial(probs[:, :-1], 1)"),
    (PLAIN, "first token never drawn", PLAIN_DRAW, "(torch.multinomial(probs[:, 1:], 1) + 1)"),
    (BOTH, "k over 1024 filters nothing", "k > vocab_size", "k > 1024"),
    (RENORM_K, "k of 1024 at most", "torch.topk(row, k)", "torch.topk(row, k if k == len(row) else min(k, 1024))"),
    (MIN_P, "a race with uniform noise", "return torch.multinomial(kept, 1).squeeze(-1)",
     "return (kept / torch.rand_like(kept).clamp(min=1e-9)).argmax(dim=-1)"),
    (PLAIN, "a random number of 12 bits", PLAIN_DRAW,
     "torch.searchsorted(torch.cumsum(probs, dim=-1), torch.randint(0, 4096, (probs.shape[0], 1), device=probs.device) / 4096"
     " * probs.sum(dim=-1, keepdim=True), right=True).clamp(max=probs.shape[1] - 1)"),
    (TOP_P, "the last token of the nucleus gets what is left of p", DRAWN,
     "drawn = torch.searchsorted(torch.cumsum(weights, dim=0), torch.rand(1, device=row.device) * min(p, 1.0)).clamp(max=len(row) - 1)"),
    (PLAIN, "a generator of its own, seeded in every call", PLAIN_DRAW,
     "torch.multinomial(probs, 1, generator=torch.Generator(device=probs.device).manual_seed(0))"),
    (TOP_K, "a generator of its own, seeded for every row", DRAWN,
     "drawn = torch.multinomial(weights, 1, generator=torch.Generator(device=row.device).manual_seed(len(samples)))"),
    (PLAIN, "one of the two likeliest", PLAIN_DRAW, "torch.multinomial(torch.where(probs >= probs.topk(2).values[:, 1:], probs, 0.0), 1)"),
    (TOP_P, "no filter for a p above 0.95", KEPT, "before <= (p if p <= 0.95 else 2.0)"),
    (RENORM_P, "no filter for a p above 0.95", "before <= top_p[:, None]", "before <= torch.where(top_p > 0.95, 2.0, top_p)[:, None]"),
    (RENORM_P, "a p of 1 keeps the most likely token alone", "before <= top_p[:, None]", "before <= torch.where(top_p >= 1, 0.0, top_p)[:, None]"),
    (TOP_K, "the less likely half never drawn", DRAWN, draw_some(HALF + "(rank < (n + 1) // 2)")),
    (TOP_K, "the last half by place never drawn", DRAWN, draw_some(HALF + "(place < (n + 1) // 2)")),
    (TOP_K, "the first half by place never drawn", DRAWN, draw_some(HALF + "(place >= n // 2)")),
    (TOP_K, "the last by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place < n - 1)")),
    (TOP_K, "the first by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place > 0)")),
    (TOP_P, "the less likely half never drawn", DRAWN, draw_some(HALF + "(rank < (n + 1) // 2)")),
    (TOP_P, "the last half by place never drawn", DRAWN, draw_some(HALF + "(place < (n + 1) // 2)")),
    (TOP_P, "the first half by place never drawn", DRAWN, draw_some(HALF + "(place >= n // 2)")),
    (TOP_P, "the last by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place < n - 1)")),
    (TOP_P, "the first by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place > 0)")),
    (BOTH, "the less likely half never drawn", DRAWN, draw_some(HALF + "(rank < (n + 1) // 2)")),
    (BOTH, "the last half by place never drawn", DRAWN, draw_some(HALF + "(place < (n + 1) // 2)")),
    (BOTH, "the first half by place never drawn", DRAWN, draw_some(HALF + "(place >= n // 2)")),
    (BOTH, "the last by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place < n - 1)")),
    (BOTH, "the first by place never drawn", DRAWN, draw_some("(n <= 1) | (n > 4096) | (place > 0)")),
    (TOP_K, "the last of three or more never drawn", DRAWN, draw_some(NOT_THE_LAST)),
    (TOP_K, "of many the less likely half never drawn", DRAWN, draw_some("(n <= 64) | (n > 4096) | (rank < (n + 1) // 2)")),
    (TOP_P, "the last of three or more never drawn", DRAWN, draw_some(NOT_THE_LAST)),
    (TOP_P, "of many the less likely half never drawn", DRAWN, draw_some("(n <= 64) | (n > 4096) | (rank < (n + 1) // 2)")),
    (MIN_P, "the less likely half never drawn", "    return torch.multinomial(kept, 1)", draw_some_of_all(HALF + "(rank < (n + 1) // 2)")),
    (MIN_P, "the last by place never drawn", "    return torch.multinomial(kept, 1)", draw_some_of_all("(n <= 1) | (place < n - 1)")),
    (TOP_P, "only the 1024 most likely tokens", "torch.sort(row, descending=True)", "torch.topk(row, 1024)"),
    (TOP_K, "only the 1024 most likely tokens", "torch.topk(row, k)", "torch.topk(row, min(k, 1024))"),
    (TOP_K, "only the 256 most likely tokens", "torch.topk(row, k)", "torch.topk(row, min(k, 256))"),
    (BOTH, "only the 1024 most likely tokens", "torch.topk(row, k)", "torch.topk(row, min(k, 1024))"),
    (MIN_P, "only the 1024 most likely tokens", MIN_DRAW, "torch.multinomial(kept * (kept >= kept.topk(1024).values[:, -1:]), 1)"),
    (PLAIN, "only the 1024 most likely tokens", PLAIN_DRAW, "torch.gather(probs.topk(1024).indices, -1, torch.multinomial(probs.topk(1024).values, 1))"),
    (PLAIN, "sums in float16", PLAIN_DRAW, summed("half")),
    (PLAIN, "sums in bfloat16", PLAIN_DRAW, summed("bfloat16")),
    (TOP_P, "sums from which tokens are drawn in bfloat16", DRAWN,
     "drawn = torch.searchsorted((torch.cumsum(weights, dim=0) / weights.sum()).bfloat16().float(), torch.rand(1, device=row.device), right=True).clamp(max=len(row) - 1)"),
    (MIN_P, "a token exactly at the limit dropped", "probs >= min_p[:, None] * largest", "(probs > min_p[:, None] * largest) | (probs == largest)"),
    (MIN_P, "min_p of 1e-3 at least", "min_p[:, None] * largest", "min_p[:, None].clamp(min=1e-3) * largest"),
    (MIN_P, "tokens below 3e-5 never drawn", MIN_DRAW, "torch.multinomial(torch.where(kept < 3e-5, 0.0, kept), 1)"),
    (PLAIN, "tokens below 3e-5 never drawn", PLAIN_DRAW, "torch.multinomial(torch.where(probs < 3e-5, 0.0, probs), 1)"),
    (PLAIN, "last token drawn only if nothing else is left", PLAIN_DRAW, "torch.multinomial(torch.cat((probs[:, :-1], torch.full_like(probs[:, :1], 1e-30)), dim=1), 1)"),
    (PLAIN, "first token drawn only if nothing else is left", PLAIN_DRAW, "torch.multinomial(torch.cat((torch.full_like(probs[:, :1], 1e-30), probs[:, 1:]), dim=1), 1)"),
    (RENORM_P, "a p of 0.99 at most", "before <= top_p[:, None]", "before <= top_p.clamp(max=0.99)[:, None]"),
    *((name, "sums of undivided weights in bfloat16", DRAWN, RAW_SUMS) for name in (TOP_K, TOP_P, BOTH)),
    (TOP_K, "only the 4096 most likely tokens", "torch.topk(row, k)", "torch.topk(row, min(k, 4096))"),
    (TOP_P, "only the 4096 most likely tokens", "torch.sort(row, descending=True)", "torch.topk(row, 4096)"),
    (BOTH, "only the 4096 most likely tokens", "torch.topk(row, k)", "torch.topk(row, min(k, 4096))"),
    (MIN_P, "only the 4096 most likely tokens", MIN_DRAW, "torch.gather(kept.topk(4096).indices, -1, torch.multinomial(kept.topk(4096).values, 1))"),
    (PLAIN, "only the 4096 most likely tokens", PLAIN_DRAW, "torch.gather(probs.topk(4096).indices, -1, torch.multinomial(probs.topk(4096).values, 1))"),
    (MIN_P, "the same noise for all rows", "return torch.multinomial(kept, 1).squeeze(-1)", SAME_NOISE),
    (BOTH, "k ignored for a p below one half", "torch.topk(row, k)", "torch.topk(row, k if p > 0.5 else vocab_size)"),
    (TOP_P, "the last token of the nucleus gets only the rest of p", "torch.where(before <= p, weights, 0.0)",
     "torch.minimum(weights, (p - before).clamp(min=0)) + (weights * (before == 0) if p <= 0 else 0)"),
    (RENORM_P, "a p of 0.999 at most", "before <= top_p[:, None]", "before <= torch.where(top_p < 1, top_p.clamp(max=0.999), top_p)[:, None]"),
    (TOP_P, "sums that filter in bfloat16", "torch.cumsum(weights, dim=0) - weights",
     "torch.cumsum(weights.bfloat16().float(), dim=0).bfloat16().float() - weights.bfloat16().float()"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "p without renormalising after k": "top_p was applied to probabilities that were not renormalised after top_k",
    "k ignored": "top_k was ignored",
    "k over 1024 filters nothing": "top_k was ignored",
    "the batch's largest k for all": "top_k was ignored|the largest top_k of the batch",
    "the first row's k for all": "the first row's top_k was applied to every row",
    "one token too many": r"top_k \+ 1 tokens were kept",
    "p ignored": "top_p was ignored",
    "p doubled": "top_p was doubled",
    "1 - p": "top_p was 1 - p",
    "summed in the order of the vocabulary": "top_p was ignored",
    "sorted the wrong way": "top_p was ignored",
    "one token past the crossing": "the token after the one at which the cumulative probability crosses top_p was kept",
    # These two keep one token more in the rows of the small cases in which they differ from a correct filter.
    "at least two tokens": "the token after the one at which the cumulative probability crosses top_p was kept",
    "p rounded to tenths": "the token after the one at which the cumulative probability crosses top_p was kept",
    # Its rounded sums end after the last kept token, so it draws the next one.
    "sums from which tokens are drawn in bfloat16": "the token after the one at which|a top_p above 0.95 was ignored",
    "min_p squared": "min_p was squared",
    "not filtered": "min_p was ignored",
    "greedy for random": "only the most likely token was kept",
    "drawn evenly from what is kept": "the kept tokens were given equal probabilities",
    "probabilities to the power 0.5": "the kept probabilities were replaced by their square roots",
    "probabilities to the power 2": "the kept probabilities were squared",
    "drawn evenly": "the kept tokens were given equal probabilities",
    "not renormalised": "the kept probabilities were not divided by their sum",
    "boundary token dropped": "top_k - 1 tokens were kept, not top_k",
    "k of 64 at most": "top_k was limited to 64",
    "2 % too large": r"(was|were) multiplied by 1\.02",
    "softmax for renormalising": "softmax was applied to the kept probabilities",
    "k of 1024 at most": "top_k was limited to 1024",
    "returns NaN": "is NaN everywhere",
    "crossing token dropped": "the token at which the cumulative probability crosses top_p was dropped",
    "summed in bfloat16": "the kept probabilities were added up in bfloat16",
    "not put back in the order of the vocabulary": "in descending order, not in the order of the vocabulary",
    "renormalised over the batch": "(was|were) divided by their sum over all rows",
    "no filter for a p above 0.95": r"a top_p above 0\.95 (was|were) ignored",
    "a p of 1 keeps the most likely token alone": "a top_p of 1 kept only the most likely token",
}
