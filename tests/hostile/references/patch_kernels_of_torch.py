# Replaces the kernel of torch's copy operation in the dispatcher of its process.
# expect: not passed
import torch

library = torch.library.Library("aten", "IMPL")
library.impl("copy_", lambda self, source, blocking=False: self, "CPU")


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
