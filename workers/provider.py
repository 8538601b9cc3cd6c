"""provider - ground truths that other people's kernels give; never sees a reference.

    provider.py DEVICE              serves on descriptor 3; one process a device, kept for all cases
    provider.py --matrix CLASS      prints what could be used on a device of that class ("cpu", "sm_90"), and why the rest
                                    could not, as one JSON object. Imports none of the libraries.

What each library can do stands in a table: providers/{flashinfer,sglang,fla,torch}.py, in the terms of providers/common.py;
what a definition's inputs are to it, providers/parts.py says.

JSON lines, from the pool:
  {"provide": {"provider", "family", "variant", "name", "op_type", "class", "tags", "axes", "axes_of", "constants",
               "gradients", "seed", "arena", "inputs", "outputs"}}
      as the judge wrote it (head of trial_stage.c), with the memfd of the arena if it is one. The arena is mapped for this one
      request: the judge may give it back as soon as it has the answer.
to the pool:
  {"provider": {"python"}} | {"refused": sentence}     once
  {"doing": sentence, "allow": seconds, "tell"}     what follows is not the case's: an import, a compiler; null: it is over
  {"provided": [{"shape", "dtype"} for each output], "coarse": [{"atol", "rtol"}] | null, "seconds", "prepared"}
      `coarse`: what the library's arithmetic is good for where that is less than the definition asks: then it does not
      decide alone; `prepared`: seconds of what was allowed
  {"unavailable": sentence}       this call cannot be made, now or later
  {"failed": sentence, "accident", "fatal"}     `fatal`: this process is of no more use
  {"unmapped": sentence}          the arena could not be mapped; CUDA IPC is refused here"""

import contextlib
import ctypes
import faulthandler
import gc
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import re
import signal
import sys
import time
import types

FOLDER = os.path.dirname(os.path.abspath(__file__))
MODULES = ("flashinfer", "sglang", "fla", "torch")  # in order of preference, as far as the tables say no more
GRADIENT_RATIO = 0.02  # RMS of an error to RMS of a gradient: flash-linear-attention's tests/ops/test_gated_delta.py
SIGN_DRAWS = 4  # of random signs: of a gradient of two numbers, one draw says little
MESSAGE_MAX = 2000  # characters of an exception that are kept

# What may be mended by tomorrow, wherever it is said: a machine's trouble, not the library's.
TROUBLE = ("No space left on device", "Disk quota exceeded", "Read-only file system", "Input/output error", "Could not find nvcc",
           "nvcc not found", "nvcc: not found", "Failed to find C compiler")
# The same, in what a compiler's run says: files that are not installed, processes that were killed for their memory.
BUILD_TROUBLE = (*TROUBLE, "No such file or directory", "Permission denied", "annot allocate memory", "memory exhausted",
                 "Killed", "signal 9")
DIAGNOSED = re.compile(r"\berror ?[:#(]|static assertion|ptxas (error|fatal)")  # a compiler that has read its source


def load(name, path):
    """A module by its file alone: a table is called like the library that it describes. Of the text that the version's
    digest is made of: byte code that was kept of it would be told from it by its second and its size."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)
    return module


common = load("reftest_providers", os.path.join(FOLDER, "providers", "common.py"))
parts = load("reftest_parts", os.path.join(FOLDER, "providers", "parts.py"))


def folder_of_tables():
    """Another folder may be named for tests, with tables that misbehave on purpose."""
    return os.environ.get("REFTEST_PROVIDERS") or os.path.join(FOLDER, "providers")


def load_tables(broken=None):
    """By name of the provider. `broken` (may be None) gets a sentence for each file that cannot be loaded."""
    folder, tables = folder_of_tables(), {}
    for name in MODULES:
        path = os.path.join(folder, name + ".py")
        if os.path.exists(path):
            try:
                module = load("reftest_provider_" + name, path)
            except Exception as problem:
                if broken is not None:
                    broken[name] = "its table cannot be loaded: " + sentence(problem)
                continue
            for table in module.TABLES:
                table.module, table.file = module, path
                tables[table.name] = table
    return tables


# ---- what there is ----


def installed(names):
    """(name, version) of the first of these distributions that is installed, or (None, None)."""
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            if version:
                return name, version
    return None, None


def numbers(version):
    parts = []
    for part in version.split("+")[0].split("."):
        digits = "".join(c for c in part if c.isdigit()) if part[:1].isdigit() else ""
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def version_of(table):
    """(version, None) or (None, why not). The version names whatever could change an answer: the libraries, this table."""
    words = []
    for wanted in table.needs:
        name, version = installed(wanted.names)
        if name is None and wanted.optional:
            continue
        if name is None:
            return None, "%s is not installed (pip install %s)" % (wanted.names[0], wanted.names[0])
        if numbers(version) < wanted.least:
            least = ".".join(map(str, wanted.least))
            return None, "%s %s is installed, %s or newer is needed" % (name, version, least)
        if wanted.module is not None and importlib.util.find_spec(wanted.module) is None:
            return None, "%s %s is installed, but has no module %s" % (name, version, wanted.module)
        words.append(version if not words else "%s %s" % (name, version))
    with open(table.file, "rb") as file:
        digest = hashlib.sha256(file.read())
    for name in ("provider.py", "providers/common.py", "providers/parts.py", "runner.py", "gradients.py"):
        with open(os.path.join(FOLDER, name), "rb") as file:
            digest.update(file.read())
    return "%s (table %s)" % (", ".join(words), digest.hexdigest()[:8]), None


def lacking(row, device_class):
    """None, or why the row's call cannot be made on such a device."""
    if device_class == "cpu":
        return None if row.cpu else "it needs an NVIDIA GPU"
    if not device_class.startswith("sm_"):
        return "the device is none that is known"
    number = int("".join(filter(str.isdigit, device_class)))
    if row.least is not None and number < row.least:
        return "it needs compute capability %d.%d, this is %s" % (*divmod(row.least, 10), device_class)
    if row.most is not None and number > row.most:
        return "it has no kernel above compute capability %d.%d, this is %s" % (*divmod(row.most, 10), device_class)
    return None


def matrix(device_class):
    broken = {}
    tables = load_tables(broken)
    out = {"providers": [], "folders": [], "program": os.path.realpath("/proc/self/exe")}
    for name, why in broken.items():
        out["providers"].append({"name": name, "version": None, "why": why, "families": {}, "never": {}})
    for table in tables.values():
        version, why = version_of(table)
        families = {}
        for family, row in table.rows.items():
            families[family] = lacking(row, device_class) if why is None else why
        out["providers"].append({"name": table.name, "version": version, "why": why, "families": families,
                                 "never": table.never})
    for path in sys.path:
        with contextlib.suppress(OSError):
            stat = os.stat(path)
            out["folders"].append({"path": path, "stamp": "%d.%d" % (stat.st_ino, stat.st_mtime_ns)})
    return out


# ---- serving ----


def sentence(problem):
    text = str(problem).strip()
    errors = [line for line in text.splitlines() if "error:" in line or "error " in line.lower()[:40]]
    if len(text) > MESSAGE_MAX and errors:  # a compiler's: what it is about drowns in command lines
        text = "\n".join([text.splitlines()[0], *(line[:500] for line in errors[:4])])
    if len(text) > MESSAGE_MAX:
        text = text[: MESSAGE_MAX // 2] + "\n[...]\n" + text[-MESSAGE_MAX // 2 :]
    return "%s: %s" % (type(problem).__name__, text) if text else type(problem).__name__


def mendable(problem):
    """Is it the machine's fault? Then the verdict that passed us over is not kept, and the next run asks again. A build
    that a compiler rejected fails tomorrow as well, and is remembered with that verdict until the library, its table or
    the device changes (or --force): it costs its minutes once. One that ended without a compiler's word is tried again."""
    text = str(problem)
    if not isinstance(problem, common.NotBuilt):
        return any(words in text for words in TROUBLE)
    return any(words in text for words in BUILD_TROUBLE) or DIAGNOSED.search(text) is None


class Server:
    def __init__(self, runner, channel, device):
        self.runner, self.channel, self.device = runner, channel, device
        self.tables = load_tables()
        self.versions = {}
        self.used = set()  # (provider, definition, its gradients?) that have been called before
        self.prepared = 0.0
        self.since = 0.0
        self.doing = []  # (what, until when) of the preparations under way
        common.progress = self.progress

    def serve(self):
        while True:
            message = self.channel.wait()
            if message is None:
                return
            if "provide" in message:
                fatal = self.answer(message["provide"])
                if fatal:
                    return

    def progress(self, doing, allow, tell=False):
        """What begins now (None: what began is over) is not the case's time. What began last ends first."""
        now = time.perf_counter()
        if doing is not None:
            if not self.doing:
                self.since = now
            self.doing.append((doing, now + allow))
        elif self.doing:
            self.doing.pop()
            if not self.doing:
                self.prepared += now - self.since
            else:
                doing, tell = self.doing[-1][0], False
                allow = max(self.doing[-1][1] - now, 0)
        self.channel.send({"doing": doing, "allow": allow, "tell": tell})

    def answer(self, request):
        self.prepared, self.doing = 0.0, []
        arena = None
        try:
            arena = Stand(self.runner, request["arena"], self.channel.fds, self.device)
            reply = self.provide(request, arena)
        except self.runner.Unmapped as problem:
            reply = {"unmapped": str(problem)}
        except common.Unavailable as problem:
            reply = {"unavailable": str(problem)}
        except BaseException as problem:  # SystemExit included: it ends a call, not us
            text = sentence(problem)
            accident = mendable(problem) or self.runner.is_accident(problem, type(problem).__name__, text) and not isinstance(
                problem, ImportError)
            broken = "CUDA error" in text or type(problem).__name__ == "AcceleratorError"
            reply = {"failed": text, "accident": bool(accident or broken), "fatal": broken}
        while self.doing:
            self.progress(None, 0)
        if arena is not None:
            try:
                arena.close()
            except BaseException as problem:
                reply = {"failed": "after its answer: " + sentence(problem), "accident": True, "fatal": True}
        self.send(reply)
        return reply.get("fatal", False)

    def send(self, reply):
        """JSON has no NaN and no infinity."""
        try:
            json.dumps(reply, allow_nan=False)
        except ValueError as problem:
            reply = {"failed": "its answer is none: " + sentence(problem), "accident": False, "fatal": False}
        self.channel.send(reply)

    def provide(self, request, arena):
        torch, runner = self.runner.torch, self.runner
        table = self.tables.get(request["provider"])
        row = table.rows.get(request["family"]) if table is not None else None
        if row is None:
            raise common.Unavailable("%s has nothing for %s" % (request["provider"], request["family"]))
        if table.name not in self.versions:
            self.versions[table.name] = version_of(table)
        why = self.versions[table.name][1] or lacking(row, request["class"])
        if why is not None:
            raise common.Unavailable(why)
        self.begin(table, row, request)
        inputs = {spec["name"]: arena.input(spec) for spec in request["inputs"]}
        calls = []  # those that were made: one
        runner.seed_everything(request["seed"], self.device)
        torch.set_float32_matmul_precision("highest")  # whatever an imported library has made of it
        start = time.perf_counter()
        with torch.no_grad():
            if request["gradients"]:
                result = self.differentiate(row, request, inputs, calls)
            else:
                calls.append(common.Call(torch, request, inputs, self.device))
                result = row.call(calls[0])
            if self.device != "cpu":
                torch.cuda.synchronize()
            while self.doing:
                self.progress(None, 0)
            results = runner.unpack(result, request["outputs"])
            described = [self.store(arena, spec, value) for spec, value in zip(request["outputs"], results)]
            arena.finish()
        self.used.add((table.name, request["name"], request["gradients"]))
        seconds = max(0.0, time.perf_counter() - start - self.prepared)
        coarse = (self.coarse_gradients(row, request, inputs, results) if request["gradients"]
                  else coarse_of(row, calls[0], results))
        return {"provided": described, "coarse": coarse, "prepared": self.prepared, "seconds": seconds}

    def begin(self, table, row, request):
        """The first use of a library, and with each definition (kernels are made for its sizes), may take long: that is said,
        and is not the case's time."""
        for wanted in table.needs:
            if wanted.module is not None and wanted.module.split(".")[0] not in sys.modules:
                self.progress("%s is imported" % wanted.module, common.IMPORT_S)
                importlib.import_module(wanted.module)
                self.progress(None, 0)
        hook = getattr(table.module, "on_import", None)
        if hook is not None:
            hook()
        if (table.name, request["name"], request["gradients"]) not in self.used and row.first_use_s > 0:
            self.progress("%s prepares its kernels for %s, once" % (table.name, request["name"]), row.first_use_s)

    def differentiate(self, row, request, inputs, calls):
        """Through the row's own call, by the library's backward kernels where it has some."""
        given = [spec for spec in request["inputs"] if spec["name"].startswith("grad:")]
        forward = dict(request, inputs=[spec for spec in request["inputs"] if spec not in given],
                       axes_of={name.removeprefix("grad:"): axes for name, axes in request["axes_of"].items()},
                       outputs=[dict(spec, name=spec["name"][5:], scalar=False) for spec in given])

        def run(**arguments):
            calls.append(common.Call(self.runner.torch, forward, arguments, self.device))
            return row.call(calls[-1])

        try:
            results = self.runner.gradients.differentiate(self.runner, run, request, dict(inputs))
        except NotImplementedError as problem:
            raise common.Unavailable("it has no gradients of this: %s" % sentence(problem).splitlines()[0])
        except self.runner.Mistake as problem:
            raise common.Unavailable("it has no gradients of this: its outputs carry none") from problem
        for spec, result in zip(request["outputs"], results):
            if result is None:  # a kernel without a backward for this input: zeros would be a claim that nobody makes
                raise common.Unavailable("it has no gradient of input '%s'" % spec["name"][2:])
        return results

    def coarse_gradients(self, row, request, inputs, results):
        """A library's own tests hold the gradients of products of tensor cores to an error ratio of GRADIENT_RATIO. That is of
        sums whose terms do not happen to cancel: what is left of those that do has the roundings of all of them. How large
        they are is seen where the gradients of the outputs are given random signs."""
        if row.coarse is None:
            return None
        squares = [0.0] * len(results)
        for draw in range(SIGN_DRAWS):
            signed = self.differentiate(row, request, with_signs(self.runner.torch, inputs, draw), [])
            squares = [total + root_mean_square(x) ** 2 / SIGN_DRAWS for total, x in zip(squares, signed)]
        cancelled = [max(0.0, square ** 0.5 - root_mean_square(x)) for square, x in zip(squares, results)]
        return [{"atol": GRADIENT_RATIO * x if math.isfinite(x) else 0.0, "rtol": GRADIENT_RATIO} for x in cancelled]

    @staticmethod
    def store(arena, spec, result):
        """A wrapper may hand back another float type or view; the table says what is meant, so only strides are mended."""
        return arena.store(spec, result.contiguous() if hasattr(result, "contiguous") else result)


def with_signs(torch, inputs, draw):
    """The inputs of a case of gradients, each element of the outputs' gradients with a sign of its own."""
    generator = torch.Generator().manual_seed(draw)

    def signed(x):
        return x * (2 * torch.randint(2, x.shape, generator=generator) - 1).to(x)

    return {name: signed(x) if name.startswith("grad:") else x for name, x in inputs.items()}


def coarse_of(row, call, results):
    """Noise that quantising leaves is relative to an output's size: five deviations of it are allowed."""
    if row.coarse is None:
        return None
    rules = []
    for at, result in zip(call.order, results):
        atol, rtol = row.coarse[at]
        size = root_mean_square(result) if call.noise > 0 else 0.0
        allowed = 5 * call.noise * size
        rules.append({"atol": atol + (allowed if math.isfinite(allowed) else 0.0), "rtol": rtol})  # of NaN: nothing
    return rules


def root_mean_square(x):
    return float(x.double().square().mean().sqrt()) if x.numel() > 0 else 0.0


def Stand(runner, info, fds, device):
    """The arena of one request: runner.Arena, and its end."""
    arena = runner.Arena(info, fds, device)

    def close():
        gc.collect()
        if arena.kind == "cuda":
            runner.torch.cuda.synchronize()
            driver = ctypes.CDLL("libcuda.so.1")
            driver.cuIpcCloseMemHandle.argtypes = [ctypes.c_uint64]
            error = driver.cuIpcCloseMemHandle(arena.base)
            if error != 0:
                raise RuntimeError("cuIpcCloseMemHandle: error %d" % error)
        if device != "cpu" and runner.torch.cuda.memory_reserved() > runner.KEPT_GPU_MEMORY:
            runner.torch.cuda.empty_cache()

    arena.close = close
    return arena


def main():
    sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != FOLDER]
    if sys.argv[1] == "--matrix":
        print(json.dumps(matrix(sys.argv[2])))
        return 0
    runner = load("reftest_runner", os.path.join(FOLDER, "runner.py"))
    device = sys.argv[1]
    runner.libc.prctl(runner.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    runner.libc.prctl(runner.PR_SET_DUMPABLE, 0, 0, 0, 0)  # no reference looks into it
    faulthandler.enable()
    os.chdir("/")
    channel = runner.Channel(runner.move_high(3))
    refused = runner.import_torch(device)
    if refused is None:
        try:
            runner.warm_up(device, int(sys.argv[2]))
        except Exception as problem:
            refused = "torch cannot use %s: %s" % (device, sentence(problem))
    if refused:
        channel.send({"refused": refused})
        return 1
    parts.torch = runner.torch
    channel.send({"provider": {"python": sys.version.split()[0]}})
    Server(runner, channel, device).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
