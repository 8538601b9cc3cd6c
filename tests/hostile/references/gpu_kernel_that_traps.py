# Runs a kernel that fails an assertion, which breaks the CUDA context of the process.
# expect: not passed
# needs: cuda
import torch


def run(hidden_states, weight):
    index = torch.full((4,), 1 << 40, device=hidden_states.device)
    result = hidden_states.flatten()[index]
    torch.cuda.synchronize()
    return result
