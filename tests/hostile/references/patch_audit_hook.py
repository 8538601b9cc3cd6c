# Installs an audit hook that raises an exception at every event, so that no later code can open or import anything.
# expect: not passed
import sys

import torch


def refuse(event, arguments):
    raise SystemExit(0)


def run(hidden_states, weight):
    result = torch.zeros_like(hidden_states)
    sys.addaudithook(refuse)
    return result
