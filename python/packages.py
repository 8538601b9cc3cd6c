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


def find_packages():
    """Adds the folders of packages to sys.path. Does not run sitecustomize or usercustomize, because they could change
    torch for every Python program of this machine or user. Returns the files of the modules, except those of the
    standard library, that code in .pth files imported."""
    import site
    before = set(sys.modules)
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()
    files = [getattr(module, "__file__", None) for name, module in sorted(sys.modules.items()) if name not in before]
    return [file for file in files if file and not is_standard(file)]


def is_standard(file):
    library = os.path.dirname(os.__file__) + os.sep  # may contain site-packages
    return file.startswith(library) and "-packages" + os.sep not in file[len(library):]


def pth_files():
    return [os.path.join(folder, name) for folder in sys.path if os.path.isdir(folder)
            for name in sorted(os.listdir(folder)) if name.endswith(".pth")]


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


def python_version(imported):
    """Returns the version of Python. `imported` is what find_packages returned."""
    version = sys.version.split()[0]
    lines = [line.strip() for file in pth_files() for line in read(file).decode("utf-8-sig", "replace").splitlines()
             if line.startswith(("import ", "import\t"))]
    lines = [line for line in lines if not is_harmless(line)]
    if not lines:
        return version
    import hashlib
    digest = hashlib.sha256("\n".join(lines).encode())
    for file in imported:
        digest.update(b"\0" + read(file))
    return version + "+pth." + digest.hexdigest()[:12]
