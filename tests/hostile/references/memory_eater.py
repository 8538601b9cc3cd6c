# Allocates memory until none is left.
# expect: error
import torch


def run(hidden_states, weight):
    kept = []
    while True:
        kept.append(torch.empty(1 << 24))
