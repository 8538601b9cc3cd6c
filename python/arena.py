"""arena - the shared memory in which runner.py finds the inputs of a case and stores its outputs. The judge owns the
memory. This module needs torch."""

import ctypes
import mmap
import os

import torch
from reftest_failures import Mistake
from reftest_tensors import as_tensor, dtype_of, form_of


class Unmapped(Exception):
    pass


class IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


class CudaBytes:
    """Device memory of another process. torch.as_tensor makes a tensor of this memory by means of the attribute
    __cuda_array_interface__."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


class Arena:
    """The shared arena, which the judge owns. The arena's tensors are created anew for every run. Each tensor has its
    own torch storage, which is freed with the tensor."""

    def __init__(self, info, fds, device):
        self.id, self.kind, self.device = info["id"], info["kind"], device
        self.staged = []  # (tensor in the arena, its copy on the device) for each input of this run
        if self.kind == "cuda":
            self.base = open_ipc(info["handle"])
            return
        if not fds:
            raise Unmapped("the message contains no file descriptor of the arena")
        fd = fds.pop()
        self.map = mmap.mmap(fd, info["bytes"])
        os.close(fd)

    @classmethod
    def private(cls, size):
        """Returns an arena of `size` bytes of this process's own memory. The memory is a bytearray, because a sandbox
        forbids memfd_create and shared mappings without a file."""
        arena = cls.__new__(cls)
        arena.id, arena.kind, arena.device, arena.staged, arena.map = None, "host", "cpu", [], bytearray(size)
        return arena

    def place(self, spec):
        """Returns the tensor that `spec` describes, in the arena's host or device memory."""
        dtype, shape = dtype_of(spec["dtype"]), list(spec["shape"])
        if spec["dtype"] == "float4_e2m1":
            if not shape or shape[-1] % 2 != 0:
                raise Mistake("'%s' is float4_e2m1, which stores two values in a byte, but its last dimension is "
                              "odd" % spec["name"])
            shape[-1] //= 2
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self.device if self.kind == "cuda" else "cpu")
        if self.kind == "cuda":
            memory = CudaBytes(self.base + spec["offset"], count * dtype.itemsize)
            return torch.as_tensor(memory, device=self.device).view(dtype).view(shape)
        return torch.frombuffer(self.map, dtype=dtype, count=count, offset=spec["offset"]).view(shape)

    def input(self, spec):
        if "offset" not in spec:
            value = spec["value"]  # a Python scalar, or None for an omitted optional input
            return float(value) if isinstance(value, str) else value  # nan and inf are sent as strings
        place = self.place(spec)
        if self.kind != "staged":
            return place
        copy = place.to(self.device, copy=True)
        self.staged.append((place, copy))
        return copy

    def store(self, spec, result):
        """Copies an output to the arena if the output has the declared shape and dtype. Returns the output's shape and
        dtype, which the judge compares with the declared ones."""
        grad = isinstance(result, torch.Tensor) and result.requires_grad
        result = as_tensor(spec, result, self.device)
        shape, dtype = form_of(result)
        if shape == spec["shape"] and dtype == spec["dtype"]:
            place = self.place(spec)
            if dtype == "float4_e2m1":
                place, result = place.view(torch.uint8), result.view(torch.uint8)
            place.copy_(result)
        return {"shape": shape, "dtype": dtype, "grad": grad}

    def store_gradient(self, spec, result):
        if result is None:
            self.place(spec).zero_()
            return {"shape": spec["shape"], "dtype": spec["dtype"], "none": True}
        return self.store(dict(spec, scalar=False), result)

    def unmap(self):
        """Ends the use of the arena's memory. Raises an exception if a tensor still uses the memory."""
        if self.kind == "cuda":
            close_ipc(self.base)
        else:
            self.map.close()

    def finish(self):
        for place, copy in self.staged:
            place.copy_(copy)  # the judge must see what the reference wrote to its inputs
        self.staged.clear()
        if self.device != "cpu":
            torch.cuda.synchronize()


def driver():
    library = ctypes.CDLL("libcuda.so.1")
    library.cuIpcOpenMemHandle_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), IpcHandle, ctypes.c_uint]
    return library


def open_ipc(handle):
    cuda = driver()
    address, raw = ctypes.c_uint64(), IpcHandle.from_buffer_copy(bytes.fromhex(handle))
    lazy_peer_access = 1
    torch.cuda.current_stream().synchronize()  # makes torch's context current
    error = cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), raw, lazy_peer_access)
    if error != 0:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(error, ctypes.byref(name))
        raise Unmapped("cuIpcOpenMemHandle: %s" % (name.value or b"error %d" % error).decode())
    return address.value


def close_ipc(address):
    error = driver().cuIpcCloseMemHandle(ctypes.c_uint64(address))
    if error != 0:
        raise Unmapped("cuIpcCloseMemHandle: error %d" % error)
