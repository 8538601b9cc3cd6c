"""activation - mistakes that people make in gated activations."""

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
    (LLAMA, "up limited to 7", "F.silu(gate) * up", "F.silu(gate) * up.clamp(-7, 7)"),
    (LLAMA, "up limited to 7 above", "F.silu(gate) * up", "F.silu(gate) * up.clamp(max=7)"),
    (LLAMA, "up limited to 500", "F.silu(gate) * up", "F.silu(gate) * up.clamp(-500, 500)"),
    (LLAMA, "gate limited to 7 above", "F.silu(gate)", "F.silu(gate.clamp(max=7))"),
    (LLAMA, "gate limited to 10", "F.silu(gate)", "F.silu(gate.clamp(-10, 10))"),
    (LLAMA, "gate limited to 500 above", "F.silu(gate)", "F.silu(gate.clamp(max=500))"),
    (LLAMA, "gates below -10 let through", "F.silu(gate)", "torch.where(gate < -10, gate, F.silu(gate))"),
    (LLAMA, "only multiples of 64 rows written", GATED, "output = (F.silu(gate) * up).to(input.dtype)\n    if len(output) > 64:\n        output[len(output) // 64 * 64 :] = 0\n    return output"),
    (LLAMA, "rounded to fp8 on the way", "F.silu(gate) * up", "F.silu(gate).to(torch.float8_e5m2).float() * up"),
    (EXPERT, "rows beyond 300 not written", OUTPUT, OUTPUT + "\n    output[300:] = 0"),
    (EXPERT, "the last of whole blocks not written", OUTPUT, OUTPUT + "\n    if len(output) % 64 == 0:\n        output[-64:] = 0"),
    (EXACT, "in bfloat16", "input.float()", "input.bfloat16().float()"),
    (EXACT, "the product limited to 1024", "gate * share * up", "(gate * share * up).clamp(-1024, 1024)"),
    (TANH, "gate limited to 16 above", 'F.gelu(gate, approximate="tanh")', 'F.gelu(gate.clamp(max=16), approximate="tanh")'),
    (LLAMA, "in float16, where products overflow", "input.float().chunk(2, dim=-1)", "input.half().chunk(2, dim=-1)"),
    (LLAMA, "the product within float16", "F.silu(gate) * up", "(F.silu(gate) * up).clamp(-65504, 65504)"),
    (EXPERT, "silu rounded to float16 before the product", OUTPUT, "output = (gate * torch.sigmoid(gate)).half().float() * up"),
    (EXACT, "float16's subnormal gates flushed to zero", "gate * share * up", "torch.where(gate.abs() < 2**-14, 0.0, gate) * share * up"),
    ("gelu_and_mul_h5120", "gate times factor is rounded to the input's dtype before it is multiplied by the share", "(gate * share * up).to(input.dtype)",
     "((gate * up).to(input.dtype) * share).to(input.dtype)"),
]
