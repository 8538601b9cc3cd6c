# Reads and writes the memory of another process with process_vm_readv and process_vm_writev.
# expect: error raised
# gap: process_memory
import ctypes


class Part(ctypes.Structure):
    _fields_ = [("place", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def run(hidden_states, weight):
    libc = ctypes.CDLL(None, use_errno=True)
    own = ctypes.create_string_buffer(8)
    here, there = Part(ctypes.addressof(own), 8), Part(0x400000, 8)
    errors = set()
    for call in (libc.process_vm_readv, libc.process_vm_writev):
        call(int("@sleeper@"), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        errors.add(ctypes.get_errno())
    BAD_ADDRESS = 14
    raise AssertionError(f"reached: {errors}" if BAD_ADDRESS in errors else f"contained: {errors}")
