# Waits forever in the C library, with every signal blocked.
# expect: error timeout
import ctypes
import signal


def run(hidden_states, weight):
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    ctypes.CDLL(None).pause()
    while True:
        ctypes.PyDLL(None).pause()
