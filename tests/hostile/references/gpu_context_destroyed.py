# Destroys the CUDA context of its process, with the memory of all its tensors.
# expect: not passed
# needs: cuda
import ctypes

import torch


def run(hidden_states, weight):
    result = torch.zeros_like(hidden_states)
    cuda = ctypes.CDLL("libcuda.so.1")
    device = ctypes.c_int()
    cuda.cuCtxGetDevice(ctypes.byref(device))
    cuda.cuDevicePrimaryCtxReset_v2(device)
    return result
