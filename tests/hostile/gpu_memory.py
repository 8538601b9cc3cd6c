"""gpu_memory.py - shares memory of a GPU with other processes by CUDA IPC. Uses only the library of the CUDA driver,
and not torch.

gpu_memory.py share DEVICE        shares memory whose bytes are all BYTE, prints its handle, and waits for the end of its input
gpu_memory.py open DEVICE HANDLE  opens the memory of a handle and prints its first byte, or the driver's error
"""

import ctypes
import sys

BYTE, SIZE, LAZY_PEER_ACCESS = 0xA7, 2 << 20, 1


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


def check(error, what):
    if error != 0:
        raise SystemExit(f"{what}: error {error}")


def driver_of(device):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, number = ctypes.c_void_p(), ctypes.c_int()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(number), int(device.partition(":")[2] or 0)), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    cuda.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), Handle, ctypes.c_uint]
    return cuda


def share(cuda):
    place, handle = ctypes.c_uint64(), Handle()
    check(cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(SIZE)), "cuMemAlloc")
    check(cuda.cuMemsetD8_v2(place, ctypes.c_ubyte(BYTE), ctypes.c_size_t(SIZE)), "cuMemsetD8")
    check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    check(cuda.cuIpcGetMemHandle(ctypes.byref(handle), place), "cuIpcGetMemHandle")
    print(bytes(handle.reserved).hex(), flush=True)
    sys.stdin.read()


def open_handle(cuda, text):
    place, byte = ctypes.c_uint64(), ctypes.c_ubyte()
    check(cuda.cuIpcOpenMemHandle_v2(ctypes.byref(place), Handle.from_buffer_copy(bytes.fromhex(text)), LAZY_PEER_ACCESS),
          "cuIpcOpenMemHandle")  # fmt: skip
    check(cuda.cuMemcpyDtoH_v2(ctypes.byref(byte), place, ctypes.c_size_t(1)), "cuMemcpyDtoH")
    print(byte.value, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "share":
        share(driver_of(sys.argv[2]))
    else:
        open_handle(driver_of(sys.argv[2]), sys.argv[3])
