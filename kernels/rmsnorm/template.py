"""rmsnorm in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest

from kernels.rms_template import (
    rms_call,
    rms_epsilon,
    rms_inputs,
    rms_probe,
    rms_roles,
    rms_torch,
)


def rmsnorm_inputs(definition, axes, device="cpu", seed=0):
    return rms_inputs(definition, axes, device, seed, 0)


def rmsnorm_flashinfer(test, inputs):
    norm = conftest.need("flashinfer.norm", conftest.device_of(inputs))
    return rms_call(test, inputs, norm.rmsnorm, norm.fused_add_rmsnorm)


def rmsnorm_sglang(test, inputs):
    kernel = conftest.need("sgl_kernel", conftest.device_of(inputs))
    return rms_call(test, inputs, kernel.rmsnorm, kernel.fused_add_rmsnorm)


def rmsnorm_fla(test, inputs):
    modules = conftest.need("fla.modules.norm.layernorm", conftest.device_of(inputs))
    hidden, residual, weight = rms_roles(conftest.definition_of(test))
    if residual is not None:
        raise NotImplementedError("a norm with a residual rounds the sum first there")
    epsilon = rms_epsilon(test, inputs)
    return modules.rms_norm(inputs[hidden], inputs[weight], None, eps=epsilon)


def rmsnorm_probe(test):
    return rms_probe(test, 0)


def rmsnorm_torch(test, inputs):
    return rms_torch(test, inputs, 0)
