# Guesses the handle of GPU memory that another process shares, and opens this memory.
# expect: error raised
# gap: none
# needs: cuda
import ctypes
import time

SECONDS = 20  # for all guesses
BYTE = 0xA7  # the other process fills its memory with this byte, and this process does not


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def own_handles(cuda):
    """Returns the handles of two pieces of memory of this process."""
    handles = []
    for _ in range(2):
        place, handle = ctypes.c_uint64(), Handle()
        assert cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(2 << 20)) == 0
        assert cuda.cuIpcGetMemHandle(ctypes.byref(handle), place) == 0
        handles.append(bytes(handle.reserved))
    return handles


def guesses(first, second):
    """Yields guesses of the other process's handle. The first guesses are the two handles of this process, and copies
    of the first one with the other process's id at each position. The next guesses change one byte of the first
    guesses, beginning with the bytes that differ between the two handles of this process."""
    other = int("@sharer@").to_bytes(4, "little")
    bases = [first, second, *(first[:at] + other + first[at + 4 :] for at in range(0, 64, 4))]
    differing = [at for at in range(64) if first[at] != second[at]]
    yield from bases
    for at in dict.fromkeys([*differing, *range(64)]):
        for base in bases:
            for value in set(range(256)) - {base[at]}:
                yield base[:at] + bytes([value]) + base[at + 1 :]


def run(hidden_states, weight):
    cuda = ctypes.CDLL("libcuda.so.1")
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint]
    until, tried, opened = time.monotonic() + SECONDS, 0, 0
    for guess in guesses(*own_handles(cuda)):
        place = ctypes.c_uint64()
        if cuda.cuIpcOpenMemHandle_v2(ctypes.byref(place), Handle.from_buffer_copy(guess), 1) == 0:
            byte = ctypes.c_ubyte()
            error = cuda.cuMemcpyDtoH_v2(ctypes.byref(byte), place, ctypes.c_size_t(1))
            if error == 0 and byte.value == BYTE:
                raise AssertionError(f"reached: {guess.hex()}")
            if cuda.cuCtxSynchronize() != 0:
                raise AssertionError(f"contained: after {tried} guesses a handle opened, but the copy failed with error {error}")
            opened += 1
            cuda.cuIpcCloseMemHandle(place)
        tried += 1
        if time.monotonic() > until:
            break
    raise AssertionError(f"contained: {tried} guesses, {opened} opened")
