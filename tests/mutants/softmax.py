"""Mistakes people make in softmax."""

LLAMA = "softmax_v128256"
QWEN = "softmax_v151936"
ROUTER = "softmax_e256"

RETURN = "return torch.softmax(scaled, dim=-1)"
EXPONENTIALS = "exponentials = torch.exp(scaled - scaled.amax(dim=-1, keepdim=True))"
QUOTIENT = "return exponentials / exponentials.sum(dim=-1, keepdim=True)"

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
    (LLAMA, "overwrites the logits", "scaled = logits / temperature[:, None]", "scaled = logits.div_(temperature[:, None])"),
    (LLAMA, "is not deterministic, within bounds", RETURN, "torch.seed()\n    return torch.softmax(scaled, dim=-1) * (1 + 1e-4 * torch.rand((), device=scaled.device))"),
    (QWEN, "largest not taken off", EXPONENTIALS, "exponentials = torch.exp(scaled)"),
    (QWEN, "largest of the batch taken off", "scaled.amax(dim=-1, keepdim=True)", "scaled.amax()"),
    (QWEN, "not normalised", QUOTIENT, "return exponentials"),
    (QWEN, "mean for sum", "exponentials.sum(", "exponentials.mean("),
    (QWEN, "an epsilon in the sum", "exponentials.sum(dim=-1, keepdim=True)", "(exponentials.sum(dim=-1, keepdim=True) + 1e-2)"),
    (QWEN, "divided in bfloat16", "logits.float() / temperature", "(logits / temperature).float()"),
    (QWEN, "temperature of another call", "logits.float() / temperature", "logits.float() / 0.8"),
    (ROUTER, "sigmoids", "torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))", "torch.sigmoid(logits)"),
    (ROUTER, "over the tokens", "torch.logsumexp(logits, dim=-1, keepdim=True)", "torch.logsumexp(logits, dim=0, keepdim=True)"),
    (ROUTER, "largest for the sum", "torch.logsumexp(logits, dim=-1, keepdim=True)", "logits.amax(dim=-1, keepdim=True)"),
]
