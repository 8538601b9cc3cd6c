"""gemm - mistakes that people make in references of C = A B^T."""

PRODUCT = "return torch.matmul(A.float(), B.float().T).to(A.dtype)"
FP8 = ".to(torch.float8_e4m3fn).float()"


def returns(text):
    return "return " + text


SMALLER = {
    "gemm_n4096_k4096": ("gemm_n512_k4096", {"N": 512}),
    "gemm_n1024_k4096": ("gemm_n256_k4096", {"N": 256}),
    "gemm_bf16_n2048_k5376": ("gemm_bf16_n256_k5376", {"N": 256}),
}
MUTANTS = [
    ("gemm_n4096_k4096", "B not transposed", "B.float().T", "B.float()"),
    ("gemm_n1024_k4096", "last k left out", PRODUCT, returns("torch.matmul(A[:, :-1].float(), B[:, :-1].float().T).to(A.dtype)")),
    ("gemm_n1024_k4096", "first k left out", PRODUCT, returns("torch.matmul(A[:, 1:].float(), B[:, 1:].float().T).to(A.dtype)")),
    ("gemm_n1024_k4096", "one k in the middle left out", PRODUCT, returns("(torch.matmul(A.float(), B.float().T) - A[:, 1234:1235].float() * B[:, 1234].float()).to(A.dtype)")),
    ("gemm_n1024_k4096", "a block of 16 k counted twice", PRODUCT, returns("(torch.matmul(A.float(), B.float().T) + torch.matmul(A[:, :16].float(), B[:, :16].float().T)).to(A.dtype)")),
    ("gemm_n1024_k4096", "output 1 % too large", PRODUCT, returns("(1.01 * torch.matmul(A.float(), B.float().T)).to(A.dtype)")),
    ("gemm_n1024_k4096", "A rounded to fp8", "A.float()", f"A.float(){FP8}"),
    ("gemm_bf16_n128_k2048", "B rounded to fp8", "B.float()", f"B.float(){FP8}"),
    ("gemm_bf16_n128_k2048", "scaled by 1/sqrt(k)", PRODUCT, returns("(torch.matmul(A.float(), B.float().T) / A.shape[1] ** 0.5).to(A.dtype)")),
    ("gemm_bf16_n128_k2048", "negated", PRODUCT, returns("torch.matmul(-A.float(), B.float().T).to(A.dtype)")),
    ("gemm_bf16_n128_k2048", "neighbouring columns swapped", PRODUCT, returns("torch.matmul(A.float(), B.float().T).reshape(A.shape[0], -1, 2).flip(-1).reshape(A.shape[0], -1).to(A.dtype)")),
    ("gemm_bf16_n128_k2048", "returns float32", PRODUCT, returns("torch.matmul(A.float(), B.float().T)")),
    ("gemm_bf16_n128_k2048", "returns zeros", PRODUCT, returns("torch.zeros(A.shape[0], B.shape[0], dtype=A.dtype, device=A.device)")),
    ("gemm_bf16_n128_k2048", "returns a constant", PRODUCT, returns("(torch.matmul(A.float(), B.float().T) * 0 + 7).to(A.dtype)")),
    ("gemm_bf16_n128_k2048", "a NaN in one place", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    C[-1, -1] = float('nan')\n    return C"),
    ("gemm_bf16_n128_k2048", "an infinity in one place", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    C[0, 0] = float('inf')\n    return C"),
    ("gemm_bf16_n128_k2048", "last row not written", PRODUCT, "C = torch.zeros(A.shape[0], B.shape[0], dtype=A.dtype, device=A.device)\n    C[:-1] = torch.matmul(A[:-1].float(), B.float().T).to(A.dtype)\n    return C"),
    ("gemm_bf16_n576_k7168", "overwrites an input", PRODUCT, "A.add_(1)\n    " + PRODUCT.replace("A.float()", "(A - 1).float()")),
    ("gemm_bf16_n576_k7168", "is not deterministic, within bounds", PRODUCT, "torch.seed()\n    return (torch.matmul(A.float(), B.float().T) * (1 + 1e-4 * torch.rand((), device=A.device))).to(A.dtype)"),
    # The next entries are mistakes in precision, and mistakes that show only with rare shapes and values.
    ("gemm_n1024_k4096", "added up in float16, 64 k at a time", PRODUCT, "C = torch.zeros(A.shape[0], B.shape[0], dtype=A.dtype, device=A.device)\n    for k in range(0, A.shape[1], 64):\n        C += (A[:, k : k + 64].float() @ B[:, k : k + 64].float().T).to(A.dtype)\n    return C"),
    ("gemm_n1024_k4096", "two halves, each rounded to float16", PRODUCT, returns("torch.matmul(A[:, :2048].float(), B[:, :2048].float().T).to(A.dtype) + torch.matmul(A[:, 2048:].float(), B[:, 2048:].float().T).to(A.dtype)")),
    ("gemm_bf16_n576_k7168", "two halves, each rounded to bfloat16", PRODUCT, returns("torch.matmul(A[:, :3584].float(), B[:, :3584].float().T).to(A.dtype) + torch.matmul(A[:, 3584:].float(), B[:, 3584:].float().T).to(A.dtype)")),
    ("gemm_n1024_k4096", "the product held within 2000", PRODUCT, returns("torch.matmul(A.float(), B.float().T).clamp(-2000, 2000).to(A.dtype)")),
    ("gemm_n1024_k4096", "A held within 2000", "A.float()", "A.float().clamp(-2000, 2000)"),
    ("gemm_bf16_n128_k2048", "B held within 1000", "B.float()", "B.float().clamp(-1000, 1000)"),
    ("gemm_n1024_k4096", "running sums held within float16", PRODUCT, "C = torch.zeros(A.shape[0], B.shape[0], device=A.device)\n    for k in range(0, A.shape[1], 128):\n        C = (C + A[:, k : k + 128].float() @ B[:, k : k + 128].float().T).clamp(-65504, 65504)\n    return C.to(A.dtype)"),
    ("gemm_bf16_n128_k2048", "rows beyond 300 left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    C[300:] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "rows in whole blocks of 64", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) > 64:\n        C[len(A) // 64 * 64 :] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "remembers the product of its shape", PRODUCT, "global seen\n    seen = globals().get('seen', {})\n    return seen.setdefault(A.shape, torch.matmul(A.float(), B.float().T).to(A.dtype)).clone()"),
    ("gemm_bf16_n576_k7168", "A passes through float16", "A.float()", "A.half().float()"),
    ("gemm_bf16_n576_k7168", "B held within float16", "B.float()", "B.float().clamp(-65504, 65504)"),
    ("gemm_bf16_n128_k2048", "A's small elements flushed to zero", "A.float()", "torch.where(A.abs() < 2**-24, 0.0, A.float())"),
    ("gemm_n1024_k4096", "B without float16's subnormals", "B.float()", "B.float() * (B.abs() >= 2**-14)"),
    ("gemm_n4096_k4096", "A without float16's subnormals", "A.float()", "A.float() * (A.abs() >= 2**-14)"),
    ("gemm_n1024_k4096", "A held within 30000", "A.float()", "A.float().clamp(-30000, 30000)"),
    ("gemm_n4096_k4096", "a multiple of 128 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) % 128 == 0:\n        C[-1] = 0\n    return C"),
    ("gemm_n1024_k4096", "a multiple of 128 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) % 128 == 0:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n2048_k5376", "a multiple of 128 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) % 128 == 0:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n576_k7168", "a multiple of 128 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) % 128 == 0:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "a multiple of 128 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) % 128 == 0:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "16 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 16:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "31 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 31:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "64 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 64:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "65 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 65:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "127 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 127:\n        C[-1] = 0\n    return C"),
    ("gemm_bf16_n128_k2048", "256 rows, the last left out", PRODUCT, "C = torch.matmul(A.float(), B.float().T).to(A.dtype)\n    if len(A) == 256:\n        C[-1] = 0\n    return C"),
    ("gemm_n1024_k4096", "the product held within float16", PRODUCT, returns("torch.matmul(A.float(), B.float().T).clamp(-65504, 65504).to(A.dtype)")),
    ("gemm_bf16_n128_k2048", "the product held within float16", PRODUCT, returns("torch.matmul(A.float(), B.float().T).clamp(-65504, 65504).to(A.dtype)")),
    ("gemm_n4096_k4096", "float16's subnormal products flushed to zero", PRODUCT, "C = torch.matmul(A.float(), B.float().T)\n    return torch.where(C.abs() < 2**-14, 0.0, C).to(A.dtype)"),
    ("gemm_bf16_n576_k7168", "products below float16's normal numbers flushed to zero", PRODUCT, "C = torch.matmul(A.float(), B.float().T)\n    return torch.where(C.abs() < 2**-14, 0.0, C).to(A.dtype)"),
    ("gemm_bf16_n128_k2048", "only the first 4096 rows", "A.float()", "(A.float() * (torch.arange(A.shape[0], device=A.device) < 4096)[:, None])"),
    ("gemm_bf16_n576_k7168", "rows after the first 512 left out", "return ", "A = A.clone()\n    A[512:] = 0\n    return "),
]

# {mistake: regular expression that a right diagnosis matches}; diagnoses.py checks the diagnoses.
DIAGNOSES = {
    "last k left out": "the last of the K products was left out of each sum",
    "first k left out": "the first of the K products was left out of each sum",
    "output 1 % too large": r"(was|were) multiplied by 1\.01",
    "scaled by 1/sqrt(k)": r"the product (was|were) divided by sqrt\(K\)",
    "negated": "(was|were) multiplied by -1",
    "neighbouring columns swapped": r"elements 2 i and 2 i \+ 1 of output 'C' were exchanged along axis 1",
    "returns zeros": "(was|were) 0",
    "returns a constant": "every element of output 'C' was 7",
    "added up in float16, 64 k at a time": "partial sums of 64 products were rounded to the dtype of the output",
    "two halves, each rounded to float16": "the sum over K was split into two halves, and each half was rounded to the dtype of the output",
    "two halves, each rounded to bfloat16": "the sum over K was split into two halves, and each half was rounded to the dtype of the output",
    "B held within 1000": "(was|were) clamped to magnitudes of at most 1000",
    "remembers the product of its shape": "(was|were) the result of an earlier call with the same shapes",
    "B held within float16": "B was limited to the range of float16",
    "a NaN in one place": r"is NaN only where (M = \d+ \(the last\) and )?N = 127 \(the last\)",
    "an infinity in one place": r"is infinite only where (M = 0 \(the first\) and )?N = 0 \(the first\)",
    "last row not written": r"is 0 (everywhere|only where M = \d+ \(the last\))",
    "a multiple of 128 rows, the last left out": r"is 0 only where M = (127|255) \(the last\)",
    "A's small elements flushed to zero": r"elements of A with magnitudes below 2\^-(14|24)",
    "the product held within float16": "(was|were) clamped to magnitudes of at most 655(04|36)",
    "A without float16's subnormals": r"elements of A with magnitudes below 2\^-14",
}
