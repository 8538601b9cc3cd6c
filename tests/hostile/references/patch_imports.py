# Replaces the import system, so that every later import returns an empty module.
# expect: error raised
import builtins
import sys
import types

import torch

builtins.__import__ = lambda name, *arguments, **keywords: types.SimpleNamespace()
sys.meta_path.clear()
sys.path_hooks.clear()
sys.path.insert(0, "/tmp")


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
