# Returns zeros while a kernel on another stream continues to write to the input.
# expect: not passed
# needs: cuda
import torch


def run(hidden_states, weight):
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        hidden_states.data.zero_()
    return torch.zeros_like(hidden_states)
