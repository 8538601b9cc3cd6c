# Runs a kernel that writes beyond the end of its input.
# expect: error out_of_bounds | error crashed
# needs: cuda
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    result = (normed * weight.float()).to(hidden_states.dtype)
    end = weight.data_ptr() + 2 * weight.numel()
    torch.as_tensor(Bytes(end, 64), device=weight.device).zero_()
    return result


class Bytes:
    def __init__(self, place, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (place, False), "version": 3}
