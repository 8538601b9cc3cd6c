"""packages - finds the packages of an interpreter that was started with -S.

This file is used in two places: in the process that runs references (runner.py), and in the process that C code starts
to find torch (workers/pool/machine_resources.c, which contains a copy of this file's text). Both must find the same
packages and report the same version of Python.

A file *.pth in a folder of packages may contain code: each line that begins with "import". Python runs this code when
it starts, so the code may change any function that a reference calls. The code therefore counts as a part of Python,
and its digest is a part of Python's version ("3.11.7+pth.0123456789ab"). Code that widespread tools write does not
count, because it changes nothing for references: it is listed in HARMLESS, or it makes an editable install known."""

import os
import sys

HARMLESS = (
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; "
    "enabled and __import__('_distutils_hack').add_shim();",
    "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'stdlib') == 'local'; "
    "enabled and __import__('_distutils_hack').add_shim();",
    "import _virtualenv",
)

# The modules and distributions with which torch computes, in addition to the packages that torch always needs.
# - opt_einsum: torch.einsum
# - triton, pytorch_triton: products of sparse matrices and torch._native (torch.bmm), on GPUs
# - cutlass, tvm_ffi, apache_tvm_ffi, nvmath, nvmath_python: torch._native (rms_norm, topk, scatter_add, …), on GPUs
# - torch_xla: enables torch.cuda.amp.GradScaler on a CPU
USED_BY_TORCH = ("apache_tvm_ffi", "cutlass", "nvmath", "nvmath_python", "opt_einsum", "pytorch_triton", "torch_xla",
                 "triton", "tvm_ffi")
# The beginnings of the names of distributions with libraries of CUDA (nvidia_cublas_cu12, nvidia_cudnn_cu13, …). Torch
# names one version of each, but another version may be installed. nvidia_cutlass_dsl contains the module cutlass.
LIBRARIES_OF_CUDA = ("nvidia_cu", "nvidia_nvjitlink")


def find_packages():
    """Adds the folders of packages to sys.path, and removes the working directory. Does not run sitecustomize or
    usercustomize, because they could change torch for every Python program of this machine or user. Returns the files
    of the modules, except those of the standard library, that code in .pth files imported."""
    sys.path[:] = filter(None, sys.path)  # before site.main, which writes "" as an absolute path
    import site
    before = set(sys.modules)
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()
    files = [getattr(module, "__file__", None) for name, module in sorted(sys.modules.items()) if name not in before]
    return [file for file in files if file and not is_standard(file)]


def is_standard(file):
    library = os.path.dirname(os.__file__) + os.sep  # may contain site-packages
    return file.startswith(library) and "-packages" + os.sep not in file[len(library):]


def entries():
    """Returns (folder, name) of each entry of the folders of packages."""
    return [(folder, name) for folder in sys.path if os.path.isdir(folder) for name in sorted(os.listdir(folder))]


def pth_files():
    return [os.path.join(folder, name) for folder, name in entries() if name.endswith(".pth")]


def is_harmless(line):
    name = line[len("import "):].partition(";")[0]
    is_finder = name.startswith("__editable___") and name.isidentifier()
    return line in HARMLESS or is_finder and line == "import %s; %s.install()" % (name, name)


def read(file):
    try:
        with open(file, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def code_in_pth_files(imported):
    """Returns the code in .pth files, and the content of the files that it imported: a list of bytes."""
    lines = [line.strip() for file in pth_files() for line in read(file).decode("utf-8-sig", "replace").splitlines()
             if line.startswith(("import ", "import\t"))]
    lines = [line for line in lines if not is_harmless(line)]
    return ["\n".join(lines).encode(), *map(read, imported)] if lines else []


def is_used_by_torch(name):
    """`name` is an entry of a folder of packages: a module, or the folder of a distribution."""
    package = name.partition("-")[0].partition(".")[0].lower()
    return package in USED_BY_TORCH or package.startswith(LIBRARIES_OF_CUDA)


def digest_as(name, parts):
    if not parts:
        return ""
    import hashlib
    return "+%s.%s" % (name, hashlib.sha256(b"\0".join(parts)).hexdigest()[:12])


def python_version(imported):
    """Returns the version of Python. `imported` is what find_packages returned."""
    packages = [os.fsencode(name) for _, name in entries() if is_used_by_torch(name)]
    return sys.version.split()[0] + digest_as("pth", code_in_pth_files(imported)) + digest_as("packages", packages)
