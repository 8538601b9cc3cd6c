# Takes all memory of the GPU.
# expect: error memory_limit
# needs: cuda
import torch


def run(hidden_states, weight):
    kept = []
    while True:
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device=hidden_states.device))
