"""exercises - small computations with which runner.py warms up torch before the first case of a reference. Their
results are not used. This module needs torch."""

import torch
from reftest_arena import CudaBytes, driver


def exercise(device):
    exercise_rows(device)
    exercise_product(device, torch.bfloat16)


def exercise_library():
    """Makes the first calls to MKL from a single thread. In its first calls, MKL detects the processor and selects
    kernels. If several threads made these calls at the same time, later matrix products could differ in their last
    bits, which was observed under load."""
    one, several = torch.ones(16, 192), torch.ones(8, 16, 192)
    torch.logsumexp(one @ one.T, -1)
    torch.softmax(several @ several.transpose(1, 2), -1) @ several
    torch.einsum("qhd,nhd->hqn", several.transpose(0, 1), several.transpose(0, 1))


def exercise_rows(device):
    x = torch.ones(4, 64, device=device, dtype=torch.bfloat16)
    y = (x.to(torch.float32).pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * x.float()
    y.to(torch.bfloat16).to(torch.float32).sum()
    torch.default_generator.manual_seed(0)
    if device != "cpu":
        torch.cuda.manual_seed(0)


def exercise_product(device, dtype):
    torch.matmul(torch.ones(4, 64, device=device, dtype=dtype), torch.ones(64, 4, device=device, dtype=dtype))


def settle(device):
    """Makes this process use as much GPU memory as it will use after it has run a reference, so that process_state.py
    finds no difference in the memory. torch allocates workspaces for cuBLAS and cuBLASLt at the first matrix product,
    and keeps them. Also frees the memory that torch caches, because a runner does the same after each reference."""
    if device == "cpu":
        return
    for dtype in (torch.float32, torch.bfloat16):
        exercise_product(device, dtype)
        exercise_product_with_bias(device, dtype)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def exercise_product_with_bias(device, dtype):
    """Multiplies matrices by cuBLASLt, which torch uses if a bias is added."""
    torch.addmm(torch.ones(4, device=device, dtype=dtype), torch.ones(4, 64, device=device, dtype=dtype),
                torch.ones(64, 4, device=device, dtype=dtype))


def steps(device):
    """Yields functions, each of which does one short step of warming up a GPU, with the most useful step first. The
    steps copy tensors through an arena, load libraries, and launch the most used kernels, because CUDA loads the code
    of a kernel at its first launch. For the CPU there are no steps."""
    if device == "cpu":
        return
    yield lambda: exercise_arena(device)
    yield lambda: exercise_rows(device)
    yield lambda: exercise_product(device, torch.bfloat16)
    for dtype in (torch.float32, torch.bfloat16):
        for common in (exercise_norm, exercise_gate, exercise_softmax):
            yield lambda common=common, dtype=dtype: common(device, dtype)
    yield lambda: exercise_product(device, torch.float32)


def exercise_arena(device):
    driver()
    memory = torch.zeros(256, device=device, dtype=torch.uint8)
    for dtype in (torch.bfloat16, torch.float32):
        place = torch.as_tensor(CudaBytes(memory.data_ptr(), 256), device=device).view(dtype).view(2, -1)
        place.copy_(place.clone())
    torch.cuda.memory_reserved()


def exercise_norm(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    x.square().mean(-1, keepdim=True).sqrt().reciprocal() * x + x - x / (x * 2 + 1e-6)


def exercise_gate(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    y = torch.nn.functional.silu(x) * torch.sigmoid(-x).exp().clamp(min=0)
    torch.where(y > 0, y, torch.zeros_like(y)).contiguous()


def exercise_softmax(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    torch.softmax(torch.cat([x, x], -1), -1).max(-1).values.sum()
    x[torch.arange(2, device=device)].float().to(dtype)
