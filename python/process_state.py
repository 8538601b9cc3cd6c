"""process_state - reads those parts of a process's state that a reference could change, with an effect on later
references. A runner that is kept runs several references. runner.py compares the state before and after each of these
references, and ends the runner if anything differs.

This is the second line of defence, because a reference that changes its process on purpose could also change the
functions of this file. The first line of defence is isolation.py: a reference whose source code could change this state
never runs in a runner that is kept."""

import gc
import os
import resource
import signal
import sys
import threading
import types
import warnings

# Number of bytes by which the memory of a runner may grow, because allocators keep freed memory. With CUDA, the memory
# was measured to grow by 0.5 to 0.7 GiB, because the driver maps host memory when it loads kernels and libraries.
MEMORY_MAX, MEMORY_MAX_CUDA = 512 << 20, 4 << 30
THREADS_MAX = 4  # number of threads that torch may start in addition to the threads of parallel loops

# Paths of torch's functions that take no argument and return a setting. Functions that do not exist in this version of
# torch are ignored.
FLAGS = """
    get_default_dtype get_default_device is_grad_enabled is_inference_mode_enabled get_deterministic_debug_mode
    is_deterministic_algorithms_warn_only_enabled get_num_threads get_num_interop_threads get_float32_matmul_precision
    is_anomaly_enabled is_autocast_cache_enabled is_warn_always_enabled
    _C._len_torch_function_stack _C._len_torch_dispatch_stack _C._is_torch_function_enabled
    _C._get_cublas_allow_tf32 _C._get_cublas_allow_fp16_reduced_precision_reduction
    _C._get_cublas_allow_bf16_reduced_precision_reduction _C._get_cudnn_allow_tf32 _C._get_cudnn_enabled _C._get_cudnn_benchmark
    _C._get_cudnn_deterministic _C._get_mkldnn_enabled _C._get_flash_sdp_enabled _C._get_mem_efficient_sdp_enabled
    _C._get_math_sdp_enabled _C._get_cudnn_sdp_enabled
""".split()
AUTOCAST = ("cpu", "cuda")
SPACES = ("", "nn", "nn.functional", "linalg", "special", "Tensor", "_C.TensorBase", "nn.Module", "autograd", "cuda", "backends", "_C")


def state(torch, device, own):
    """Returns {name of a part of the state: value}. `own` are reftest's own modules in this process, which no reference
    may change."""
    spaces = [(name, reached(torch, name)) for name in SPACES]
    spaces += [(module.__name__, module) for module in (sys.modules["builtins"], sys.modules["math"], sys.modules["random"], *own)]
    found = {"torch's " + path: call() for path, call in ((path, reached(torch, path)) for path in FLAGS) if callable(call)}
    found.update(("the names of " + (name or "torch"), ids(space)) for name, space in spaces if space is not None)
    found.update({
        "autocast": [torch.is_autocast_enabled(kind) for kind in AUTOCAST],
        "order of contractions": (torch.backends.opt_einsum.enabled, torch.backends.opt_einsum.strategy),
        "treatment of denormal numbers": float(torch.tensor([1e-310], dtype=torch.float64) * 1.0) != 0,
        "generator of random numbers": id(torch.default_generator),
        "modules": {name: id(module) for name, module in list(sys.modules.items())},
        "module search": (ids_of(sys.meta_path), ids_of(sys.path_hooks), tuple(sys.path)),
        "trace function": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        "hooks": tuple(map(id, (sys.excepthook, sys.displayhook, sys.unraisablehook, threading.excepthook))),
        "collector": (gc.isenabled(), gc.get_threshold(), ids_of(gc.callbacks)),
        "signals": tuple(map(signal.getsignal, range(1, signal.NSIG))),
        "limits of Python": (sys.getrecursionlimit(), sys.getswitchinterval()),
        "standard streams": tuple(map(id, (sys.stdin, sys.stdout, sys.stderr))),
        "environment": dict(os.environ),
        "working directory": os.getcwd(),
        "limits": tuple(resource.getrlimit(kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_STACK)),
        "warnings": len(warnings.filters),
        "threads of Python": tuple(thread.ident for thread in threading.enumerate()),
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": descriptors(),
        "memory": data_bytes(),
    })
    if device != "cpu":
        found.update({"device": torch.cuda.current_device(),
                      "stream": torch.cuda.current_stream().cuda_stream,
                      "memory of the GPU": torch.cuda.memory_allocated(),
                      "devices in use": [torch.cuda.memory_reserved(i) > 0 for i in range(torch.cuda.device_count())]})
    return found


def difference(before, after, threads):
    """Compares two results of the function state. Returns the name of a part that differs, or None. If the part is a
    number, the returned text also contains both numbers. `threads` is the number of threads that torch uses for
    parallel loops."""
    for name, old in before.items():
        new = after[name]
        if name == "threads":
            same = new <= old + threads + THREADS_MAX
        elif name == "memory":
            same = new <= old + (MEMORY_MAX_CUDA if "memory of the GPU" in before else MEMORY_MAX)
        elif name == "memory of the GPU":
            same = new <= old
        elif name == "modules":
            same = all(new.get(key) == value for key, value in old.items()) and all(map(of_libraries, new.keys() - old.keys()))
        elif name == "descriptors":  # allowed: the driver opens its devices when it needs them
            same = all(path.startswith("/dev/nvidia") for path in changed(old, new))
        elif name.startswith("the names of "):  # allowed: torch adds modules when they are first used
            same = all(new.get(key) == value for key, value in old.items()) and \
                all(type(new[key]) is Module for key in new.keys() - old.keys())
        else:
            same = new == old
        if not same:
            return "%s (%d, now %d)" % (name, old, new) if type(old) is int else name
    return None


def reached(torch, path):
    value = torch
    for name in path.split(".") if path else ():
        value = getattr(value, name, None)
    return value


class Module(int):
    """The id of a module. This type distinguishes the ids of modules from the ids of other objects, because torch may
    add modules to a namespace, but no other objects."""


def ids(space):
    """Returns the ids of a module's values and of the code of its functions."""
    return {name: (id(value), id(value.__code__)) if type(value) is types.FunctionType else
            Module(id(value)) if type(value) is types.ModuleType else id(value)
            for name, value in list(vars(space).items()) if name not in ("__builtins__", "__warningregistry__")}


def ids_of(values):
    return tuple(map(id, values))


def of_libraries(name):
    return name.partition(".")[0] in {"torch", "numpy", "opt_einsum", "mpmath", "sympy"} | sys.stdlib_module_names


def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink("/proc/self/fd/" + name)
        except OSError:
            pass  # this descriptor was used to read the directory, and is closed now
    return found


def changed(old, new):
    """Returns the paths of the file descriptors that were opened, closed or replaced."""
    return [new.get(fd, old.get(fd)) for fd in old.keys() | new.keys() if old.get(fd) != new.get(fd)]


def data_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
