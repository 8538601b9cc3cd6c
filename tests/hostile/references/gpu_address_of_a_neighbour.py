# Runs a kernel that reads and writes memory of the GPU that does not belong to its tensors.
# expect: not passed
# needs: cuda
import torch


class Bytes:
    def __init__(self, place, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (place, False), "version": 3}


def run(hidden_states, weight):
    for distance in (1 << 21, 1 << 25, 1 << 30):
        place = hidden_states.data_ptr() & -(1 << 21)
        torch.as_tensor(Bytes(place + distance, 1 << 12), device=hidden_states.device).zero_()
    torch.cuda.synchronize()
    return torch.zeros_like(hidden_states)
