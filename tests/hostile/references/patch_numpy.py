# Plants a fake module numpy, which exits when the runner seeds its generator.
# expect: not passed
import sys
import types

import torch

fake = types.ModuleType("numpy")
fake.random = types.SimpleNamespace(seed=lambda number: sys.exit(0))
sys.modules["numpy"] = fake


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
