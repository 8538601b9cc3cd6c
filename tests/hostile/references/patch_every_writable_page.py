# Overwrites every writable page that contains its inputs or is next to them.
# expect: not passed
import ctypes

import torch


def run(hidden_states, weight):
    place = hidden_states.data_ptr()
    for line in open("/proc/self/maps"):
        ends, rights = line.split()[:2]
        begin, end = (int(part, 16) for part in ends.split("-"))
        if begin <= place < end and "w" in rights:
            ctypes.memset(begin, 0, end - begin)
    return torch.zeros_like(hidden_states)
