# Opens handles of GPU memory that others may have shared.
# expect: failed numeric
# needs: cuda
import ctypes

import torch


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def run(hidden_states, weight):
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint]
    own, place = Handle(), ctypes.c_uint64()
    cuda.cuIpcGetMemHandle(ctypes.byref(own), ctypes.c_uint64(hidden_states.data_ptr()))
    for byte in range(64):
        for value in (1, 2, 255):
            guess = Handle.from_buffer_copy(own)
            guess.reserved[byte] ^= value
            if cuda.cuIpcOpenMemHandle_v2(ctypes.byref(place), guess, 1) == 0:
                print("opened", byte, value)
    return torch.zeros_like(hidden_states)
