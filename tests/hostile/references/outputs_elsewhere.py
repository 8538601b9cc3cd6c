# Returns a tensor without memory, on the device "meta".
# expect: error raised
import torch


def run(hidden_states, weight):
    return torch.empty_like(hidden_states, device="meta")
