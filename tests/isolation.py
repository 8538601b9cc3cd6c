"""isolation - tests which references may share a runner (python/isolation.py), and whether everything that a reference
could leave behind is found (python/process_state.py). Prints TAP."""

import contextlib
import ctypes
import gc
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "python"))

import isolation  # noqa: E402
import process_state  # noqa: E402

warnings.filterwarnings("ignore")
import torch  # noqa: E402

HEAD = "import torch\nimport math\nimport torch.nn.functional as F\n"
RUN = HEAD + "def run(x):\n    return "

# {title: (source of a reference that could affect more than its call, part of the reason that must be reported)}
OUTSIDE = {
    "pad in circles": (HEAD + "def run(x):\n    return F.pad(x, (1, -1), mode='circular')\n", "uses pad"),
    "pad with a mode by position": (HEAD + "def run(x):\n    return F.pad(x, (1, -1), 'circular')\n", "uses pad"),
    "pad with a computed mode": (HEAD + "def run(x, m):\n    return F.pad(x, (1, -1), mode=m)\n", "uses pad"),
    "pad with arguments in a tuple": (HEAD + "def run(x, a):\n    return F.pad(*a)\n", "uses pad"),
    "pad as a value": (HEAD + "def run(x):\n    p = F.pad\n    return p(x, (1, -1), mode='circular')\n", "uses pad"),
    "pad that is imported": ("from torch.nn.functional import pad\ndef run(x):\n    return pad(x, (1, -1))\n", "imports pad"),
    "assignment to a module": (HEAD + "torch.add = None\n", "changes the attribute 'add'"),
    "assignment in a tuple": (HEAD + "torch.add, y = 1, 2\n", "changes the attribute 'add'"),
    "assignment by an index": (RUN + "torch.add.__dict__\n", "__dict__"),
    "assignment by for": (HEAD + "for torch.add in [1]: pass\n", "changes the attribute"),
    "assignment by with": (HEAD + "def run(x):\n    with torch.no_grad() as torch.add:\n        return x\n", "with"),
    "assignment by +=": (HEAD + "torch.pi += 1\n", "changes the attribute"),
    "assignment with a type": (HEAD + "torch.pi: int = 1\n", "changes the attribute"),
    "del": (HEAD + "del torch.add\n", "changes the attribute"),
    "default dtype": (RUN + "torch.set_default_dtype(torch.float64)\n", "set_default_dtype"),
    "flags": (HEAD + "torch.backends.cuda.matmul.allow_tf32 = True\n", "attribute"),
    "flags by import": ("from torch.backends import cuda\n", "imports cuda"),
    "flags by import from torch": ("from torch import backends\n", "imports backends"),
    "everything": ("from torch import *\n", "imports *"),
    "relative": ("from . import x\n", "imports x"),
    "a module beside": ("import torch.utils.hooks\n", "imports torch.utils.hooks"),
    "a module of Python": ("import os\n", "imports os"),
    "import by call": (RUN + "__import__('os')\n", "__import__"),
    "getattr": (RUN + "getattr(x, 'data')\n", "getattr"),
    "format": (RUN + "'{0.__class__}'.format(x)\n", "format"),
    "format by a field": (RUN + "f'{x.__class__}'\n", "__class__"),
    "a builtin renamed": (HEAD + "isinstance = lambda a, b: b(3)\ndef run(x):\n    return isinstance(x, torch.Tensor)\n", "isinstance"),
    "a builtin as an argument": (HEAD + "def run(open):\n    return open\nopen('x')\n", "'open'"),
    "a builtin imported": ("from math import exp as open\n", "'open'"),
    "the builtins": (RUN + "__builtins__\n", "__builtins__"),
    "globals": (RUN + "globals()\n", "globals"),
    "a class": (HEAD + "class A:\n    pass\n", "a class"),
    "a type of three": (RUN + "type('A', (), {})\n", "'type'"),
    "global": (HEAD + "n = 0\ndef run(x):\n    global n\n    n = 1\n    return x\n", "global"),
    "a generator in a with": (HEAD + "def g():\n    with torch.no_grad():\n        yield 1\n", "yield"),
    "try": (HEAD + "try:\n    pass\nexcept Exception:\n    pass\n", "try"),
    "another context": (HEAD + "def run(x):\n    with torch.device('cuda'):\n        return x\n", "with"),
    "uninitialised memory": (RUN + "torch.empty_like(x)\n", "empty_like"),
    "memory by a method": (RUN + "x.new_empty(3)\n", "new_empty"),
    "memory by resize": (RUN + "x.resize_(3)\n", "resize_"),
    "memory by Tensor": (RUN + "torch.Tensor(3)\n", "Tensor"),
    "memory by an alias": (HEAD + "T = torch.Tensor\n", "Tensor"),
    "memory by a name": ("from torch import Tensor as T\n", "renames Tensor"),
    "memory by an imported name": ("from torch import Tensor\ndef run(x):\n    return Tensor(3)\n", "Tensor"),
    "memory in an annotation": (HEAD + "def run(x: torch.Tensor(3)):\n    return x\n", "Tensor"),
    "memory bound in an annotation": (HEAD + "def run(x: (y := torch.Tensor)):\n    return y(3)\n", "Tensor"),
    "memory by FloatTensor": (RUN + "torch.FloatTensor(3)\n", "FloatTensor"),
    "memory of others": (RUN + "x.as_strided((9,), (1,))\n", "as_strided"),
    "a number about memory": (RUN + "x.repeat_interleave(x, output_size=9)\n", "output_size"),
    "another generator": (RUN + "torch.randn(3, generator=None)\n", "generator"),
    "seeds": (RUN + "torch.manual_seed(0)\n", "manual_seed"),
    "streams": (RUN + "torch.cuda.Stream()\n", "attribute"),
    "autograd": (RUN + "x.backward()\n", "backward"),
    "a hook": (RUN + "x.register_hook(len)\n", "register_hook"),
    "the storage": (RUN + "x.untyped_storage()\n", "untyped_storage"),
    "numpy": (RUN + "x.numpy()\n", "numpy"),
    "compile": (HEAD + "@torch.compile\ndef run(x):\n    return x\n", "compile"),
    "arguments by name": (RUN + "torch.add(**{'out': x})\n", "by **"),
    "out": (RUN + "torch.add(x, x, out=x)\n", "'out'"),
    "printed text": (RUN + "print(x)\n", "print"),
    "frames": (RUN + "(lambda: 0).__globals__\n", "__globals__"),
    "match": (HEAD + "match 1:\n    case object(real=y):\n        pass\n", "match"),
    "no Python": ("def run(:\n", "cannot be parsed"),
    "NUL": ("\0", "cannot be parsed"),
    "depth": ("x = " + "[" * 90 + "1" + "]" * 90, "too deeply"),
    "depth of operators": ("x = " + "-" * 3000 + "1", None),
    "length": ("#" * (65 << 10), "longer than"),
    "a surrogate": ("x = '\udc00'\n", None),
}

INSIDE = {
    "pad": HEAD + "def run(x):\n    return F.pad(F.pad(x, (1, 1)), (1, 1), mode='reflect')\n",
    "a norm": HEAD + "@torch.no_grad()\ndef run(input, weight):\n    y = input.float()\n    return (y * torch.rsqrt(y.pow(2).mean(-1, "
                     "keepdim=True) + 1e-6) * weight).to(input.dtype)\n",
    "types": "from __future__ import annotations\nfrom typing import Optional\nimport torch\nfrom torch import Tensor\n"
             "def run(x: Tensor, y: Optional[torch.Tensor] = None) -> tuple[Tensor, Tensor | None]:\n"
             "    assert isinstance(x, torch.Tensor), f'{x.shape}'\n    return x, y\n",
    "writes to own values": HEAD + "def run(x):\n    out = torch.zeros_like(x)\n    for i in range(len(x)):\n        out[i] = x[i] * 2\n"
                                   "        out[i].mul_(2)\n    d = {}\n    d[1] = [F.silu(out)]\n    return d[1][0]\n",
    "a context": HEAD + "def run(x):\n    with torch.inference_mode():\n        return torch.softmax(x, -1)\n",
}

# The hostile references that may share a runner. These references do harm only by their outputs or the time that they
# take, and do not affect later references.
HARMLESS = set("""answers_memoised_by_shape answers_right_at_first endless_at_load endless_loop outputs_complex outputs_enormous
outputs_not_a_number outputs_that_are_inputs outputs_too_many recursion_in_python text_directions text_of_100_megabytes
text_of_markup text_orders_to_ci text_surrogates text_terminal_orders""".split())
# The hostile references that may share a runner if the runner erases memory: those of HARMLESS, and references that use
# up memory or return memory that they never wrote.
HARMLESS_IF_ERASED = HARMLESS | set("""gpu_memory_eater memory_eater memory_of_one_tensor outputs_elsewhere
outputs_untouched_memory""".split())

failed = 0


def tell(good, what, why=""):
    global failed
    failed += not good
    print(f"{'ok' if good else 'not ok'} - {what}{'' if good else ': ' + str(why)}")


def texts():
    for name, (text, part) in OUTSIDE.items():
        why = isolation.needs_own(text, False)
        tell(why is not None and (part is None or part in why), f"own: {name}", why)
        why = isolation.needs_own(text, True)
        tell((why is None) == (part in isolation.UNINITIALISED), f"own, memory is erased: {name}", why)
    for name, text in INSIDE.items():
        why = isolation.needs_own(text, False)
        tell(why is None, f"kept: {name}", why)
    for path in sorted((TOP / "tests/hostile/references").glob("*.py")):
        for erases, harmless in ((False, HARMLESS), (True, HARMLESS_IF_ERASED)):
            why = isolation.needs_own(path.read_text(encoding="utf-8"), erases)
            tell((why is None) <= (path.stem in harmless), f"hostile: {path.stem}{', memory is erased' if erases else ''}", "it is kept")
    starter = {path.stem: json.loads(path.read_text())["reference"] for path in sorted((TOP / "definitions").glob("*/*.json"))}
    own = {name: isolation.needs_own(text, False) for name, text in starter.items()}
    others = {name: why for name, why in own.items() if why is not None and "'empty" not in why}
    tell(len(own) > 50 and not others, "starter references need a runner of their own only for uninitialised memory", others)
    own = {name: why for name, why in ((name, isolation.needs_own(text, True)) for name, text in starter.items()) if why is not None}
    tell(not own, "starter references share runners that erase memory", own)


# References that may share a runner although they keep something between two calls.
KEEPS = {
    "a list": HEAD + "seen = []\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a dict": HEAD + "seen = {}\ndef run(x):\n    seen[0] = 1\n    return x * len(seen)\n",
    "a tensor": HEAD + "seen = torch.zeros(1)\ndef run(x):\n    return x * seen.add_(1)\n",
    "a default argument": HEAD + "def run(x, seen=[]):\n    seen.append(1)\n    return x * len(seen)\n",
    "a default argument by name": HEAD + "def run(x, *, seen=[]):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list in a tuple": HEAD + "seen = (1, [])\ndef run(x):\n    seen[1].append(1)\n    return x * len(seen[1])\n",
    "a list with a type": HEAD + "seen: list = []\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list of an operation": HEAD + "seen = 1 * [0]\ndef run(x):\n    seen[0] += 1\n    return x * seen[0]\n",
    "a list of a branch": HEAD + "if True:\n    seen = []\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a function's value": HEAD + "def make():\n    seen = []\n    return lambda: seen\nget = make()\ndef run(x):\n    return get().append(1)\n",
    "an iterator": HEAD + "seen = map(abs, [1, 2])\ndef run(x):\n    return x * sum(seen)\n",
    "a tensor by another math": "import torch as math\nseen = math.zeros(1)\ndef run(x):\n    return x * seen.add_(1)\n",
    "a tensor by a second math": HEAD + "math = torch\nseen = math.zeros(1)\ndef run(x):\n    return x * seen.add_(1)\n",
    "a list of an argument's annotation": HEAD + "def note(x: (seen := [])): return x\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list of a result's annotation": HEAD + "def note(x) -> (seen := []): return x\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list of a constant's annotation": HEAD + "ONE: (seen := []) = 1\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list of a decorator": HEAD + "@torch.inference_mode((seen := []) is not None)\ndef note(x): return x\ndef run(x):\n    seen.append(1)\n    return x * len(seen)\n",
    "a list of the function that a decorator calls":
        HEAD + "def make(function):\n    seen = []\n    return lambda x: seen.append(x)\n@torch.no_grad(make)\ndef run(x):\n    return x\n",
    "a lambda's default": HEAD + "run = lambda x, seen=[]: seen.append(1)\n",
}
STATELESS = {
    "constants": HEAD + "EPS = -1e-6 * 2\nPAIR: tuple = (1, 'a')\nKIND = torch.float32\nROOT = math.sqrt(2)\n"
                 + "@torch.inference_mode(True)\ndef note(x): return x\n@torch.no_grad()\ndef run(x, eps=EPS, *, kind=None):\n    'text'\n    y = []\n    y.append(x)\n    return y[0]\n",
}


def stateless():
    for name, text in KEEPS.items():
        why = isolation.needs_own(text, False)
        tell(why is None and not isolation.is_stateless(text), f"keeps something: {name}", why)
    for name, text in STATELESS.items():
        tell(isolation.is_stateless(text), f"stateless: {name}", isolation.needs_own(text, False))
    for name in sorted(isolation.UNINITIALISED):
        text = HEAD + f"def run(x):\n    return x.{name}(3)\n"
        tell(isolation.needs_own(text, True) is None and not isolation.is_stateless(text), f"keeps uninitialised memory: {name}")
    starter = [json.loads(path.read_text())["reference"] for path in sorted((TOP / "definitions").glob("*/*.json"))]
    kept = [text for text in starter if isolation.needs_own(text, False) is None]
    most = sum(map(isolation.is_stateless, kept))
    tell(most > len(kept) * 3 // 4, "most starter references are stateless", f"{most} of {len(kept)}")


def attributes():
    """Checks the list of allowed attributes. In torch, math and the modules of `known`, no allowed attribute may be a
    module that is not in `known`, a class that makes tensors, or a value that a reference could change."""
    known = {torch.nn: "nn", torch.nn.functional: "functional", torch.functional: "functional", torch.linalg: "linalg",
             torch.special: "special", torch.cpu: "cpu"}
    classes = (torch.device, torch.dtype, torch.finfo, torch.iinfo, torch.layout, torch.no_grad, torch.inference_mode)
    spaces = (torch, math, *known)
    for name in sorted(isolation.ATTRIBUTES):
        for value in (getattr(space, name) for space in spaces if hasattr(space, name)):
            if isinstance(value, types.ModuleType):
                good = known.get(value) == name
            elif isinstance(value, type):
                good = value in classes
            else:
                good = callable(value) or isinstance(value, (int, float, torch.dtype))
            if not good:
                tell(False, f"attribute {name}", value)
    tell(not any(name.startswith("_") for name in isolation.ATTRIBUTES), "no attribute is private")
    made = [name for name in ("empty", "empty_like", "new_empty", "empty_strided", "new", "resize_", "set_", "Tensor", "data", "storage")
            if name in isolation.ATTRIBUTES]
    tell(not made, "no attribute makes uninitialised memory", made)


def state():
    return process_state.state(torch, "cpu", (isolation, process_state))


def replaced(target, name, value):
    """Returns functions that replace an attribute and restore it."""
    old = getattr(target, name)
    return lambda: setattr(target, name, value), lambda: setattr(target, name, old)


def file_opened():
    opened = []
    return lambda: opened.append(os.open("/dev/zero", os.O_RDONLY)), lambda: os.close(opened.pop())


def thread_started():
    end = threading.Event()
    thread = threading.Thread(target=end.wait, daemon=True)
    return thread.start, lambda: (end.set(), thread.join())


def code_replaced():
    function, old = torch.nn.functional.softmax, torch.nn.functional.softmax.__code__
    return (lambda: setattr(function, "__code__", (lambda *a, **k: None).__code__)), lambda: setattr(function, "__code__", old)


def memory_kept():
    kept = []
    return lambda: kept.append(torch.ones(150 << 20)), kept.clear


class PassingMode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, kinds, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


def changes():
    """Returns {change: (do, undo)}."""
    mode = PassingMode()
    hook = lambda *_: None  # noqa: E731
    grad = contextlib.ExitStack()
    return {
        "default dtype": (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
        "grad mode": (lambda: grad.enter_context(torch.no_grad()), grad.close),
        "deterministic algorithms": (lambda: torch._C._set_deterministic_algorithms(True), lambda: torch._C._set_deterministic_algorithms(False)),
        "precision": (lambda: torch.set_float32_matmul_precision("medium"), lambda: torch.set_float32_matmul_precision("highest")),
        "threads of torch": (lambda: torch.set_num_threads(7), lambda n=torch.get_num_threads(): torch.set_num_threads(n)),
        "denormal numbers": (lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False)),
        "the order of contractions": replaced(torch.backends.opt_einsum, "enabled", "planted"),
        "a function mode": (lambda: mode.__enter__(), lambda: mode.__exit__(None, None, None)),
        "a function of torch": replaced(torch, "add", hook),
        "a method of tensors": replaced(torch.Tensor, "split", hook),
        "an inherited method of tensors": (lambda: setattr(torch.Tensor, "copy_", hook), lambda: delattr(torch.Tensor, "copy_")),
        "a function of torch.nn": replaced(torch.nn.functional, "silu", hook),
        "the code of a function": code_replaced(),
        "a builtin": replaced(sys.modules["builtins"], "sorted", hook),
        "a function of math": replaced(math, "exp", hook),
        "a function of the runner": replaced(isolation, "check_call", hook),
        "a module": (lambda: sys.modules.update(outsider=types.ModuleType("outsider")), lambda: sys.modules.pop("outsider")),
        "another module": (lambda: sys.modules.update(json=math), lambda: sys.modules.update(json=json)),
        "the search path": (lambda: sys.path.append("/x"), sys.path.pop),
        "an importer": (lambda: sys.meta_path.append(hook), sys.meta_path.pop),
        "a trace function": (lambda: sys.setprofile(hook), lambda: sys.setprofile(None)),
        "a hook for exceptions": replaced(sys, "excepthook", hook),
        "a callback of the collector": (lambda: gc.callbacks.append(hook), gc.callbacks.pop),
        "a signal": (lambda: signal.signal(signal.SIGUSR1, hook), lambda: signal.signal(signal.SIGUSR1, signal.SIG_DFL)),
        "the recursion limit": (lambda: sys.setrecursionlimit(5000), lambda n=sys.getrecursionlimit(): sys.setrecursionlimit(n)),
        "an output stream": replaced(sys, "stderr", open(os.devnull, "w")),
        "the environment": (lambda: os.environ.update(LEFT="1"), lambda: os.environ.pop("LEFT")),
        "the directory": (lambda: os.chdir("/proc"), lambda n=os.getcwd(): os.chdir(n)),
        "a descriptor": file_opened(),
        "a thread": thread_started(),
        "memory": memory_kept(),
    }


def states():
    before = state()
    threads = torch.get_num_threads()
    tell(process_state.difference(before, state(), threads) is None, "nothing differs at first", process_state.difference(before, state(), threads))
    for name, (do, undo) in changes().items():
        before = state()
        do()
        found = process_state.difference(before, state(), threads)
        undo()
        tell(found is not None, f"found: {name}")
        after = process_state.difference(before, state(), threads)
        tell(after is None, f"undone: {name}", after)


# Calls of allowed functions with inputs for which there is nothing to compute: a product over no elements, a mask that
# selects nothing, an input without rows. The results of these calls must not be uninitialised memory. `z` makes zeros.
NOTHING_TO_COMPUTE = """
    z(8, 0) @ z(0, 8) | torch.bmm(z(2, 4, 0), z(2, 0, 8)) | torch.mv(z(64, 0), z(0)) | torch.addmv(z(64), z(64, 0), z(0), beta=0)
    torch.addmm(z(8, 8), z(8, 0), z(0, 8), beta=0) | torch.addbmm(z(8, 8), z(0, 8, 3), z(0, 3, 8), beta=0)
    torch.addbmm(z(8, 8), z(2, 8, 0), z(2, 0, 8), beta=0) | torch.baddbmm(z(1, 8, 8), z(1, 8, 0), z(1, 0, 8), beta=0)
    torch.addr(z(8, 8), z(8), z(8), beta=0, alpha=0) | F.linear(z(8, 0), z(8, 0)) | F.linear(z(8, 0), z(8, 0), z(8))
    torch.einsum("ik,kj->ij", z(8, 0), z(0, 8)) | torch.tensordot(z(8, 0), z(0, 8), dims=1)
    torch.linalg.multi_dot([z(8, 0), z(0, 3), z(3, 8)]) | torch.chain_matmul(z(8, 0), z(0, 3), z(3, 8))
    F.conv1d(z(1, 0, 64), z(1, 0, 1)) | F.conv2d(z(1, 0, 8, 8), z(1, 0, 1, 1))
    F.conv_transpose1d(z(1, 1, 16), z(1, 1, 1), stride=4, output_padding=3)
    F.scaled_dot_product_attention(z(1, 1, 8, 8), z(1, 1, 8, 8), z(1, 1, 8, 8), attn_mask=z(8, 8).bool())
    F.scaled_dot_product_attention(z(1, 1, 8, 8), z(1, 1, 8, 8), z(1, 1, 8, 8), attn_mask=z(8, 8) - math.inf)
    F.scaled_dot_product_attention(z(1, 1, 8, 8), z(1, 1, 0, 8), z(1, 1, 0, 8)) | F.scaled_dot_product_attention(z(1, 8, 8), z(1, 0, 8), z(1, 0, 8))
    F.scaled_dot_product_attention(z(1, 1, 8, 0), z(1, 1, 8, 0), z(1, 1, 8, 8))
    F.scaled_dot_product_attention(z(1, 1, 8, 8), z(1, 1, 2, 8), z(1, 1, 2, 8), is_causal=True)
    torch.softmax(z(64, 0), -1) | z(64, 0).sum(-1) | z(64, 0).mean(-1) | torch.logsumexp(z(64, 0), -1) | z(64, 0).prod(-1)
    z(64, 0).norm(dim=-1) | torch.linalg.vector_norm(z(64, 0), dim=-1) | z(64, 0).var(-1) | torch.std_mean(z(64, 0), -1)[0]
    torch.var_mean(z(64, 0), -1)[1] | z(64, 0).nanmean(-1) | torch.quantile(z(64, 1), z(0), dim=-1) | torch.histc(z(0), 64)
    torch.bincount(z(0).long(), minlength=64) | F.pad(z(1, 1, 40), (-8, 32), mode="circular") | F.pad(z(1, 1, 80), (-8, -8), mode="circular")
    F.pad(z(1, 1, 72), (-16, 8), mode="replicate") | F.max_pool1d(z(1, 1, 64) * math.nan, 1) | F.max_pool2d(z(1, 1, 8, 8) - math.inf, 1)
    F.avg_pool1d(z(1, 1, 9), 2, stride=2, ceil_mode=True) | F.nll_loss(z(64, 3), z(64).long() - 100, reduction="none")
    F.cross_entropy(z(64, 3), z(64).long() - 100, reduction="none") | F.cosine_similarity(z(64, 0), z(64, 0))
    F.pairwise_distance(z(64, 0), z(64, 0)) | z(64).scatter_reduce(0, z(0).long(), z(0), "mean", include_self=False)
    z(64).index_add(0, z(0).long(), z(0)) | torch.searchsorted(z(64, 0), z(64, 1)) | torch.bucketize(z(64), z(0))
    torch.matrix_power(torch.eye(8), 0) | torch.hstack([z(0), z(64)]) | torch.linalg.cholesky(torch.eye(8)) | torch.tril_indices(8, 8)
"""


def shows_freed_memory(call, counts=(64, 128)):
    """Returns whether the result of a call contains values from memory that was freed before the call."""
    for _ in range(20):
        for count in counts:
            freed = [torch.full((count,), 12345.0) for _ in range(16)]
            del freed
        if bool((call().double() == 12345).any()):
            return True
    return False


def memory_without_values():
    def z(*shape):
        return torch.zeros(shape)

    names = {"torch": torch, "math": math, "F": torch.nn.functional, "z": z}
    calls = [call.strip() for line in NOTHING_TO_COMPUTE.splitlines() for call in line.split(" | ") if call.strip()]
    bad = [call for call in calls if shows_freed_memory(eval("lambda: " + call, names))]
    tell(len(calls) > 50 and not bad, "functions with nothing to compute show no freed memory", bad)
    tell(shows_freed_memory(lambda: torch.empty(64)), "uninitialised memory is found")


OVERWRITTEN = [1, 3, 64, 1000, 1 << 16, 1 << 20]  # numbers of elements of freed tensors


def overwritten_memory():
    """Checks that uninitialised memory contains no values of freed tensors after a call of overwrite_freed_memory().
    The check runs in a process with the malloc settings of runners."""
    text = (TOP / "workers/pool/reference_environment.c").read_text()
    environment = {**os.environ, "GLIBC_TUNABLES": re.search(r'"GLIBC_TUNABLES=([^"]*)"', text)[1]}
    done = subprocess.run([sys.executable, __file__, "--overwritten"], env=environment, capture_output=True, text=True, check=False)
    shown, after = json.loads(done.stdout or "[[], [-1]]")
    tell(len(shown) > 2, "freed memory shows before malloc overwrites it", (shown, done.stderr))
    tell(after == [], "freed memory that malloc overwrites shows nothing", (after, done.stderr))


def print_overwritten():
    """Finds the sizes for which an uninitialised tensor contains values of freed tensors. Prints these sizes before
    and after a call of overwrite_freed_memory(), as two lists."""
    import runner

    def shown():
        return [count for count in OVERWRITTEN if shows_freed_memory(lambda: torch.empty(count), (count,))]

    before = shown()
    runner.overwrite_freed_memory()
    print(json.dumps([before, shown()]))


class FakeGpu:
    """Stands in for torch.cuda and the driver: it has one segment of memory, in this process, with blocks in three
    states."""

    STATES = ("active_allocated", "inactive", "active_awaiting_free", "active_allocated", "inactive")

    def __init__(self):
        self.memory = (ctypes.c_ubyte * (16 * len(self.STATES)))(*[7] * (16 * len(self.STATES)))
        self.frees = 3

    def memory_snapshot(self):
        return [{"address": ctypes.addressof(self.memory), "blocks": [{"state": state, "size": 16} for state in self.STATES]}]

    def memory_stats(self):
        return {"num_device_free": self.frees}

    def empty_cache(self):
        self.frees += 1

    def synchronize(self):
        pass

    def cuMemsetD8_v2(self, address, value, size):  # noqa: N802
        ctypes.memset(address.value, value.value, size.value)
        return 0

    def block(self, i):
        return set(self.memory[16 * i:16 * i + 16])


def erased_gpu_memory():
    """Checks which GPU memory a runner overwrites before it frees this memory, and that a runner ends if torch's
    allocator has already freed memory by itself."""
    import runner
    for title, kept, freed in (("kept", True, 0), ("not kept", False, 0), ("kept, but memory was freed", True, 1)):
        gpu = FakeGpu()
        child = types.SimpleNamespace(before={} if kept else None, frees=gpu.frees)
        gpu.frees += freed
        runner.torch, runner.driver = types.SimpleNamespace(cuda=gpu), lambda gpu=gpu: gpu
        runner.Child.free_gpu_memory(child)
        erased = kept and not freed
        unused = {255} if erased else {7}
        found = [gpu.block(i) for i in range(len(gpu.STATES))]
        expected = [{7} if state == "active_allocated" else unused for state in gpu.STATES]
        tell(found == expected, f"GPU memory of a runner that is {title}", found)
        tell((child.frees == runner.gpu_memory_frees()) == erased, f"frees of a runner that is {title}", child.frees)
    runner.torch = torch


def rehearsal():
    """Checks that rehearse(), which runs in the zygote and in waiting runners, changes nothing that a later reference
    could notice."""
    import runner
    torch.set_num_threads(1)
    tell(runner.import_torch("cpu") is None, "the runner's modules load in this process")
    runner.rehearse()  # rehearse() imports the modules that torch imports late

    def state():
        return process_state.state(torch, "cpu", ()), sorted(os.listdir("/proc/self/fd"))

    before, fds = state()
    runner.rehearse()
    after, fds_after = state()
    left = process_state.difference(before, after, 1)
    tell(left is None and fds == fds_after, "a rehearsal leaves nothing in its process", (left, fds, fds_after))


if sys.argv[1:] == ["--overwritten"]:
    print_overwritten()
    sys.exit()
texts()
stateless()
overwritten_memory()
erased_gpu_memory()
rehearsal()
memory_without_values()
attributes()
states()
sys.exit(failed > 0)
