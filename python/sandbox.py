"""sandbox - confines the processes of runner.py with the library libreftest_sandbox.so. The library determines what a
reference can access (workers/sandbox/sandbox.h)."""

import ctypes
import os
import pwd
import sys
import tempfile

ABI, PID, PROC, TMP = 3, 1 << 5, 1 << 6, 1 << 7  # workers/sandbox/sandbox.h


class Sandbox:
    def __init__(self, descriptor, device, root, place):
        self.library = ctypes.CDLL("/proc/self/fd/%d" % descriptor, use_errno=True)
        os.close(descriptor)
        if self.library.sandbox_abi() != ABI:
            raise OSError("libreftest_sandbox.so is from a different build of reftest; run make")
        self.library.sandbox_open.restype = ctypes.c_void_p
        self.library.sandbox_folder.restype = ctypes.c_char_p
        self.library.sandbox_layers.restype = self.library.sandbox_enter.restype = ctypes.c_uint32
        self.library.sandbox_limit_memory.restype = ctypes.c_int64
        hidden = [path for path in (root, os.environ.get("HOME"), home_of_user()) if path]
        paths, message = interpreter_paths(), ctypes.create_string_buffer(1024)
        handle = self.library.sandbox_open(strings(paths), len(paths), strings(hidden), len(hidden), device != "cpu",
                                           message, len(message))
        if not handle:
            raise OSError(message.value.decode(errors="replace"))
        self.place = place  # the folder for temporary files of runners without their own /tmp
        self.handle = ctypes.c_void_p(handle)
        self.layers = self.library.sandbox_layers(self.handle)
        self.folder = os.fsdecode(self.library.sandbox_folder(self.handle))
        self.has_pids = bool(self.layers & PID)  # whether each child has its own PID namespace
        self.has_folders = bool(self.layers & TMP)  # whether each child has its own /tmp in memory
        if self.has_folders:  # set once, before the forks: a child that sets it would have to copy memory pages
            set_folder(self.folder)

    def before_fork(self):
        """Prepares for the fork of a child. Returns the pid of the process that keeps the child's PID namespace alive,
        and the child's temporary folder."""
        folder = self.folder if self.has_folders else tempfile.mkdtemp(dir=self.place)
        keeper = self.library.sandbox_before_fork(self.handle)
        if keeper < 0:
            raise OSError(ctypes.get_errno(), "cannot create a PID namespace for a reference")
        return keeper, folder

    def after_fork(self):
        if self.library.sandbox_after_fork(self.handle) != 0:
            raise OSError(ctypes.get_errno(), "cannot switch back to the zygote's own PID namespace")

    def enter(self, folder):
        """Confines this process, which is a new child. At the start, the zygote tries out which layers of the sandbox
        can be set up. Raises an exception if one of these layers cannot be set up now."""
        if not self.has_folders:
            set_folder(folder)
        missing = self.layers & ~self.library.sandbox_enter(self.handle, os.fsencode(folder))
        if missing:
            raise OSError("the sandbox of this reference lacks layers that it should have (%#x)" % missing)

    def limit_memory(self, size, kept):
        """Limits the memory of this process, which is a child, and returns how many more bytes this process may use. If
        `kept` is true, the limit can be raised later, for the next reference in this process."""
        left = self.library.sandbox_limit_memory(self.handle, ctypes.c_int64(size), ctypes.c_int(kept))
        if left < 0:
            os.write(2, b"the memory of this reference cannot be limited\n")
            os._exit(1)
        return left

    def limit_processor_time(self, seconds, kept):
        """Limits the processor time of this process, which is a child, and of each process that it starts. If `seconds`
        is 0, there is no limit."""
        if self.library.sandbox_limit_processor_time(ctypes.c_int64(seconds), ctypes.c_int(kept)) != 0:
            os.write(2, b"the processor time of this reference cannot be limited\n")
            os._exit(1)

    def open_proc(self):
        """Returns a file descriptor for the /proc of this process's PID namespace, or None."""
        layers = PID | PROC
        return os.open("/proc", os.O_RDONLY | os.O_DIRECTORY) if self.layers & layers == layers else None

    def reap(self, keeper):
        self.library.sandbox_reap(self.handle, keeper)

    def end(self, keeper, folder):
        """Kills the processes that a child has left behind, and removes the child's temporary folder."""
        self.library.sandbox_end(self.handle, keeper)
        if not self.has_folders:
            self.library.sandbox_remove_folder(os.fsencode(folder))


def set_folder(folder):
    """Makes `folder` the home directory and the directory for temporary files and compilers' caches."""
    for name in ("HOME", "TMPDIR"):
        os.environ[name] = folder
    for name in ("XDG_CACHE_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"):
        os.environ.pop(name, None)  # so that the caches of compilers are below HOME


def home_of_user():
    """Returns the home directory from the user database (/etc/passwd), because HOME may be missing or changed."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*map(os.fsencode, texts))


def interpreter_paths():
    """Returns the files and directories that this interpreter needs: its prefixes, its packages (including editable
    installs) and the folders of shared libraries."""
    paths = [sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *sys.path]
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        paths += os.environ.get(name, "").split(":")
    for name, module in list(sys.modules.items()):
        if name.startswith("__editable__"):  # setuptools' finder for editable installs
            paths += [path for path in getattr(module, "MAPPING", {}).values() if isinstance(path, str)]
    return [path for path in dict.fromkeys(paths) if path.startswith("/")]
