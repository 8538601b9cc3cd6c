"""gemma_rmsnorm in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest

from kernels.rms_template import rms_call, rms_inputs, rms_probe, rms_torch


def gemma_rmsnorm_inputs(definition, axes, device="cpu", seed=0):
    return rms_inputs(definition, axes, device, seed, 1)


def gemma_rmsnorm_flashinfer(test, inputs):
    norm = conftest.need("flashinfer.norm", conftest.device_of(inputs))
    return rms_call(test, inputs, norm.gemma_rmsnorm, norm.gemma_fused_add_rmsnorm)


def gemma_rmsnorm_sglang(test, inputs):
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return rms_call(test, inputs, kernel.gemma_rmsnorm, kernel.gemma_fused_add_rmsnorm)


def gemma_rmsnorm_probe(test):
    return rms_probe(test, 1)


def gemma_rmsnorm_torch(test, inputs):
    return rms_torch(test, inputs, 1)
