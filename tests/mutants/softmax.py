"""softmax - mistakes that people make in softmax."""

LLAMA = "softmax_v128256"
QWEN = "softmax_v151936"
ROUTER = "softmax_e256"

RETURN = "return torch.softmax(scaled, dim=-1)"
EXPONENTIALS = "exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))"
QUOTIENT = "return exponentials / exponentials.sum(dim=-1, keepdim=True)"
EXP = "torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))"
CALL = "return " + EXP

SMALLER = {
    LLAMA: ("softmax_v16032", {"vocab_size": 16032}),
    QWEN: ("softmax_v18992", {"vocab_size": 18992}),
}
MUTANTS = [
    (LLAMA, "temperature ignored", "logits / temperature[:, None]", "logits / 1"),
    (LLAMA, "multiplied by the temperature", "logits / temperature[:, None]", "logits * temperature[:, None]"),
    (LLAMA, "the first row's temperature for all", "temperature[:, None]", "temperature[:1, None]"),
    (LLAMA, "temperature of the output", RETURN, "return torch.softmax(logits, dim=-1) / temperature[:, None]"),
    (LLAMA, "over the batch", RETURN, "return torch.softmax(scaled, dim=0)"),
    (LLAMA, "logarithms", RETURN, "return torch.log_softmax(scaled, dim=-1)"),
    (LLAMA, "powers of two", RETURN, "return torch.softmax(scaled * 0.6931471805599453, dim=-1)"),
    (LLAMA, "logits rounded to bfloat16", RETURN, "return torch.softmax(scaled.bfloat16().float(), dim=-1)"),
    (LLAMA, "last token left out", RETURN, "probs = torch.zeros_like(scaled)\n    probs[:, :-1] = torch.softmax(scaled[:, :-1], dim=-1)\n    return probs"),
    (LLAMA, "2 % too large", RETURN, "return 1.02 * torch.softmax(scaled, dim=-1)"),
    (LLAMA, "masked tokens get a little", RETURN, "return torch.softmax(scaled.nan_to_num(neginf=-20.0), dim=-1)"),
    (LLAMA, "returns float64", RETURN, "return torch.softmax(scaled, dim=-1).double()"),
    (LLAMA, "returns zeros", RETURN, "return torch.zeros_like(scaled)"),
    (LLAMA, "exponentials in float16", RETURN, "exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True)).half().float()\n    return exponentials / exponentials.sum(dim=-1, keepdim=True)"),
    (LLAMA, "small exponentials set to zero", RETURN, "probs = torch.softmax(scaled, dim=-1)\n    probs = torch.where(probs < 6e-8, 0.0, probs)\n    return probs / probs.sum(dim=-1, keepdim=True)"),
    (LLAMA, "overwrites the logits", "scaled = logits / temperature[:, None]", "scaled = logits.div_(temperature[:, None])"),
    (LLAMA, "is not deterministic, within bounds", RETURN, "torch.seed()\n    return torch.softmax(scaled, dim=-1) * (1 + 1e-4 * torch.rand((), device=scaled.device))"),
    (QWEN, "largest not taken off", EXPONENTIALS, "exponentials = torch.exp(scaled)"),
    (QWEN, "largest of the batch taken off", "scaled.amax(dim=-1, keepdim=True)", "scaled.amax()"),
    (QWEN, "not normalised", QUOTIENT, "return exponentials"),
    (QWEN, "summed without the exponentials below float16's range", "exponentials.sum(dim=-1, keepdim=True)", "exponentials.half().float().sum(dim=-1, keepdim=True)"),
    (QWEN, "mean for sum", "exponentials.sum(", "exponentials.mean("),
    (QWEN, "an epsilon in the sum", "exponentials.sum(dim=-1, keepdim=True)", "(exponentials.sum(dim=-1, keepdim=True) + 1e-2)"),
    (QWEN, "divided in bfloat16", "logits.float() / temperature", "(logits / temperature).float()"),
    (QWEN, "temperature of another call", "logits.float() / temperature", "logits.float() / 0.8"),
    (ROUTER, "sigmoids", "torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))", "torch.sigmoid(logits)"),
    (ROUTER, "over the tokens", "torch.logsumexp(logits, dim=-1, keepdim=True)", "torch.logsumexp(logits, dim=0, keepdim=True)"),
    (ROUTER, "largest for the sum", "torch.logsumexp(logits, dim=-1, keepdim=True)", "logits.amax(dim=-1, keepdim=True)"),
    (LLAMA, "temperatures kept above 0.5", "temperature[:, None]", "temperature[:, None].clamp(min=0.5)"),
    (LLAMA, "temperatures kept above 0.1", "temperature[:, None]", "temperature[:, None].clamp(min=0.1)"),
    (LLAMA, "temperatures kept above 0.05", "temperature[:, None]", "temperature[:, None].clamp(min=0.05)"),
    (LLAMA, "temperatures kept above 0.01", "temperature[:, None]", "temperature[:, None].clamp(min=0.01)"),
    (LLAMA, "temperatures in bfloat16", "temperature[:, None]", "temperature[:, None].bfloat16()"),
    (LLAMA, "temperatures kept below 2.5", "temperature[:, None]", "temperature[:, None].clamp(max=2.5)"),
    (LLAMA, "temperatures below 0.3 taken for greedy", RETURN, "greedy = torch.zeros_like(scaled).scatter_(1, scaled.argmax(dim=-1, keepdim=True), 1.0)\n    return torch.where(temperature[:, None] < 0.3, greedy, torch.softmax(scaled, dim=-1))"),
    (LLAMA, "logits limited to 150", "scaled = logits /", "scaled = logits.clamp(max=150) /"),
    (LLAMA, "probabilities rounded to bfloat16", RETURN, RETURN + ".bfloat16().float()"),
    (LLAMA, "only multiples of 64 rows written", RETURN, "probs = torch.softmax(scaled, dim=-1)\n    if len(probs) > 64:\n        probs[len(probs) // 64 * 64 :] = 0\n    return probs"),
    (LLAMA, "the last of whole blocks not written", RETURN, "probs = torch.softmax(scaled, dim=-1)\n    if len(probs) % 16 == 0:\n        probs[-16:] = 0\n    return probs"),
    (QWEN, "temperature kept above 0.1", "logits.float() / temperature", "logits.float() / max(temperature, 0.1)"),
    (QWEN, "temperature kept above 0.05", "logits.float() / temperature", "logits.float() / max(temperature, 0.05)"),
    (QWEN, "temperature kept below 2", "logits.float() / temperature", "logits.float() / min(temperature, 2.0)"),
    (QWEN, "a temperature of 0.75 by heart", "logits.float() / temperature", "logits.float() / 0.75"),
    (QWEN, "exponentials rounded to bfloat16", QUOTIENT, "exponentials = exponentials.bfloat16().float()\n    " + QUOTIENT),
    (QWEN, "sum rounded to bfloat16", QUOTIENT, "return exponentials / exponentials.sum(dim=-1, keepdim=True).bfloat16().float()"),
    (QWEN, "sum in float16, which saturates", QUOTIENT, "return exponentials / exponentials.sum(dim=-1, keepdim=True).half().float()"),
    (ROUTER, "rows beyond 300 not written", CALL, f"probs = {EXP}\n    probs[300:] = 0\n    return probs"),
    (ROUTER, "cut at 128 rows", CALL, f"probs = {EXP}\n    probs[128:] = 0\n    return probs"),
    (ROUTER, "the last of whole blocks not written", CALL, f"probs = {EXP}\n    if len(probs) % 256 == 0:\n        probs[-256:] = 0\n    return probs"),
    (QWEN, "a maximum over whole blocks of 1024 columns", "scaled.amax(", "scaled[:, : scaled.shape[1] // 1024 * 1024].amax("),
    (QWEN, "a maximum over all columns but the first", "scaled.amax(", "scaled[:, 1:].amax("),
    (LLAMA, "a maximum that starts at -10000", RETURN, "exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True).clamp(min=-1e4))\n    return exponentials / exponentials.sum(dim=-1, keepdim=True)"),
    (LLAMA, "logits limited to -10000 below", "scaled = logits /", "scaled = torch.where(torch.isinf(logits), logits, logits.clamp(min=-1e4)) /"),
    (ROUTER, "logits below -30000 taken for masked", CALL, f"logits = logits.masked_fill(logits < -3e4, float('-inf'))\n    return ({EXP}).nan_to_num(0.0)"),
    (LLAMA, "only -infinity is a mask, and the mean is taken off", RETURN, "live = ~torch.isinf(scaled)\n    centre = torch.where(live, scaled, 0.0).sum(-1, keepdim=True) / live.sum(-1, keepdim=True)\n    scaled = scaled - centre\n    return torch.softmax(scaled, dim=-1)"),
    (ROUTER, "only the first 4096 rows", "return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))", "output = torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))\n    output[4096:] = 0\n    return output"),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "temperature ignored": "the temperature was left out",
    "multiplied by the temperature": "logits were multiplied by the temperature",
    "temperature of the output": "the probabilities, not the logits, were divided by the temperature",
    "over the batch": "columns, not rows, were normalised",
    "powers of two": "powers of 2 were used instead of powers of e",
    "logits rounded to bfloat16": "logits were rounded to bfloat16 after the division by the temperature",
    "last token left out": "the last logit of each row was left out",
    "masked tokens get a little": r"masked logits \(-infinity\) were -20",
    "returns zeros": "(was|were) 0",
    "2 % too large": r"(was|were) multiplied by 1\.02",
    "cut at 128 rows": "is 0 only where num_tokens >= 128",
    "largest not taken off": "the largest logit was not subtracted before the exponentials, which overflow",
    "not normalised": "the exponentials were not divided by their sum",
    "mean for sum": "the exponentials were divided by their mean",
    "an epsilon in the sum": "an epsilon of 1e-2 was added to the sum of the exponentials",
    "sigmoids": "sigmoid was applied to each logit",
    "over the tokens": "columns, not rows, were normalised",
    "largest for the sum": "the exponentials were not divided by their sum",
    "temperatures kept above 0.5": r"was clamped to at least 0\.5",
    "temperatures kept above 0.1": r"was clamped to at least 0\.1",
    "temperatures kept below 2.5": r"was clamped to at most 2\.5",
    "temperatures below 0.3 taken for greedy": r"temperatures below 0\.3 were greedy",
    "temperature kept below 2": r"was clamped to at most 2$",
    "sum rounded to bfloat16": "the sum of the exponentials was rounded to bfloat16",
    "sum in float16, which saturates": "the sum of the exponentials was rounded to float16",
    "logarithms": "the logarithm of the softmax was returned",
}
