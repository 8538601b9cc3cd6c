# Makes another stream current, and returns from run before the answer is ready on that stream.
# expect: passed | failed numeric | failed nondeterministic
# needs: cuda
import torch


def run(hidden_states, weight):
    torch.cuda.set_stream(torch.cuda.Stream())
    torch.cuda._sleep(100_000_000)
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
