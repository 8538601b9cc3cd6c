"""programs - loads, for runner.py, solutions that consist of several files. The files are in Python, or in C++ or CUDA,
which torch's extension builder compiles.

If a message {"load"} has "files", the message has these fields:
- "files": a list [[path, content]] of all files, and "entry_file": the path of the file that defines the function
- "build": "none" for Python, "cpp" or "cuda" for code that must be compiled first
- "outputs": "returned" if the function returns its outputs; "written" if it writes them to tensors that it gets after
  its inputs; "guessed" if the signature of the function decides between the two"""

import inspect
import os
import shutil
import sys
import types

CXX_SOURCES = (".cpp", ".cc", ".cxx", ".cu")
COMPILER_LINES = 40  # at most this many lines of a compiler's output are shown


def write_files(files, folder):
    for path, content in files:
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "x", encoding="utf-8") as out:
            out.write(content)


def modules_of(files):
    """Returns the names of the modules that the files define."""
    return {path.split("/")[0].removesuffix(".py") for path, _ in files}


def load_python(message, folder, filename):
    """Runs the entry file, which can import the other files, and returns its namespace."""
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    module = types.ModuleType("reftest_solution")
    module.__file__ = filename
    sys.modules[module.__name__] = module
    source = next(content for path, content in message["files"] if path == message["entry_file"])
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def missing_compiler(cuda):
    """Returns a sentence that says which compiler this machine lacks, or None."""
    if cuda and shutil.which("nvcc") is None and not os.environ.get("CUDA_HOME") and not os.path.exists("/usr/local/cuda/bin/nvcc"):
        return "the program is written in CUDA, and this machine has no nvcc"
    if shutil.which(os.environ.get("CXX", "c++")) is None:
        return "the program is written in C++, and this machine has no compiler (c++)"
    if shutil.which("ninja") is None:
        return "torch's extension builder needs the program ninja, which this machine lacks"
    return None


def first_errors(text):
    """Returns the part of a compiler's output that begins with the first error."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if "error" in line), 0)
    return "\n".join(lines[first:first + COMPILER_LINES])


def load_compiled(message, folder, subject, mistake, lacking):
    cuda = message["build"] == "cuda"
    lack = missing_compiler(cuda)
    if lack:
        raise lacking("%s: %s" % (subject, lack))
    from torch.utils import cpp_extension
    sources = [os.path.join(folder, path) for path, _ in message["files"] if path.endswith(CXX_SOURCES)]
    build = folder + ".build"
    os.makedirs(build)
    try:
        module = cpp_extension.load("reftest_solution", sources, build_directory=build, with_cuda=cuda,
                                    extra_include_paths=[folder], verbose=False)
    except RuntimeError as problem:
        raise mistake("%s does not compile:\n%s" % (subject, first_errors(str(problem)).replace(folder + "/", ""))) from None
    return vars(module)


def by_position(function, how, outputs):
    """Returns a function that gets the inputs as keyword arguments, in the order of the definition, and passes them to
    `function` as positional arguments. `outputs` returns new tensors for the outputs of a call."""
    def call(**inputs):
        places = outputs()
        values = list(inputs.values())
        if how == "written" or how == "guessed" and writes(function, len(values), len(places)):
            function(*values, *places)
            return tuple(places)
        return function(*values)

    return call


def writes(function, inputs, outputs):
    """Guesses from the signature whether the function writes its outputs to tensors that it gets after its inputs. If
    the signature does not decide this, returns true, because the format of solutions makes this the default."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    for count, answer in ((inputs, False), (inputs + outputs, True)):
        try:
            signature.bind(*[None] * count)
            return answer
        except TypeError:
            pass
    return True
