# Traces the runner's own functions and changes what they return.
# expect: not passed
import sys
import threading

import torch


def trace(frame, event, argument):
    if "self" in frame.f_locals:
        frame.f_locals.clear()
    return trace


def run(hidden_states, weight):
    sys.settrace(trace)
    sys.setprofile(trace)
    threading.settrace(trace)
    return torch.zeros_like(hidden_states)
