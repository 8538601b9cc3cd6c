# Changes the local variables of the runner's functions through the stack frames of its callers.
# expect: not passed
import ctypes
import sys

import torch


def run(hidden_states, weight):
    frame = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if name == "case" and type(value) is dict:
                value["outputs"], value["inputs"] = [], []
            if name == "self" and hasattr(value, "earlier"):
                value.earlier, value.defaults = [[], []], {}
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
        frame = frame.f_back
    return torch.zeros_like(hidden_states)
