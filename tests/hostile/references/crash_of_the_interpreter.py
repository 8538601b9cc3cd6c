# Breaks the interpreter's own objects.
# expect: error crashed | error raised
import ctypes
import sys


def run(hidden_states, weight):
    ctypes.memset(id(None), 0, 16)
    ctypes.memset(id(type), 0, 256)
    sys.stdout.flush()
    return hidden_states
