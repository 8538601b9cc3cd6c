# Catches the signal of a crash and returns to the instruction that crashed, again and again.
# expect: error timeout | error crashed
import ctypes
import signal


def run(hidden_states, weight):
    libc = ctypes.CDLL(None)
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: None)
    run.handler = handler
    libc.signal(signal.SIGSEGV, handler)
    ctypes.string_at(0)
