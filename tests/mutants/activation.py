"""Mistakes people make in gated activations."""

LLAMA = "silu_and_mul_h14336"
EXPERT = "silu_and_mul_h2048"
TANH = "gelu_tanh_and_mul_h21504"
EXACT = "gelu_and_mul_h5120"

GATED = "return (F.silu(gate) * up).to(input.dtype)"
CHUNK = "gate, up = input.float().chunk(2, dim=-1)"
OUTPUT = "output = gate * torch.sigmoid(gate) * up"

MUTANTS = [
    (LLAMA, "gate and up swapped", CHUNK, "up, gate = input.float().chunk(2, dim=-1)"),
    (LLAMA, "gate and up interleaved", CHUNK, "gate, up = input.float()[..., 0::2], input.float()[..., 1::2]"),
    (LLAMA, "gelu for silu", "F.silu(gate)", "F.gelu(gate)"),
    (LLAMA, "not multiplied", "F.silu(gate) * up", "F.silu(gate)"),
    (LLAMA, "added for multiplied", "F.silu(gate) * up", "F.silu(gate) + up"),
    (LLAMA, "2 % too large", "F.silu(gate) * up", "1.02 * F.silu(gate) * up"),
    (LLAMA, "silu of the product", "F.silu(gate) * up", "F.silu(gate * up)"),
    (LLAMA, "silu of both halves", "F.silu(gate) * up", "F.silu(gate) * F.silu(up)"),
    (LLAMA, "relu", "F.silu(gate)", "F.relu(gate)"),
    (LLAMA, "hard swish", "F.silu(gate)", "F.hardswish(gate)"),
    (LLAMA, "input rounded to fp8", "input.float()", "input.to(torch.float8_e4m3fn).float()"),
    (LLAMA, "last column zero", GATED, "output = (F.silu(gate) * up).to(input.dtype)\n    output[..., -1] = 0\n    return output"),
    (LLAMA, "returns float32", GATED, "return F.silu(gate) * up"),
    (LLAMA, "returns zeros", GATED, "return torch.zeros_like(up).to(input.dtype)"),
    (LLAMA, "overwrites its input", GATED, "input.mul_(2)\n    " + GATED),
    (LLAMA, "is not deterministic, within bounds", GATED, "torch.seed()\n    return (F.silu(gate) * up * (1 + 1e-4 * torch.rand((), device=up.device))).to(input.dtype)"),
    (EXPERT, "sigmoid for silu", OUTPUT, "output = torch.sigmoid(gate) * up"),
    (EXPERT, "quick gelu for silu", OUTPUT, "output = gate * torch.sigmoid(1.702 * gate) * up"),
    (EXPERT, "an exponential that overflows", OUTPUT, "output = gate * (gate.exp() / (1 + gate.exp())) * up"),
    (EXPERT, "one column too early", "input[..., half:]", "input[..., half - 1 : -1]"),
    (TANH, "the exact gelu", ', approximate="tanh"', ""),
    (TANH, "silu for gelu", 'F.gelu(gate, approximate="tanh")', "F.silu(gate)"),
    (TANH, "quick gelu", 'F.gelu(gate, approximate="tanh")', "(gate * torch.sigmoid(1.702 * gate))"),
    (EXACT, "the tanh form", "torch.erf(gate / math.sqrt(2))", "torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))"),
    (EXACT, "no square root of 2", "gate / math.sqrt(2)", "gate"),
    (EXACT, "half left out", "0.5 * (1 + torch.erf", "1.0 * (1 + torch.erf"),
    (EXACT, "x left out", "gate * share * up", "share * up"),
]
