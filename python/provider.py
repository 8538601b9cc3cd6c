"""provider - computes ground truths with other libraries. This process never sees a reference.

provider.py DEVICE THREADS computes ground truths for all cases on a device, in one process. It exchanges JSON lines
with the pool on descriptor 3.

provider.py --matrix CLASS prints a JSON object: the libraries that can be used on a device of the class CLASS ("cpu",
"sm_90"), and the reasons why other libraries cannot be used. With --matrix, provider.py does not import these
libraries.

The files libraries/{flashinfer,sglang,fla,torch,fi_api}.py contain tables that say how each library is called;
libraries/common.py defines the form of these tables.

The pool sends requests. If the shared memory of a request is a memfd, its descriptor is sent with the request:

    {"provide": {"provider", "family", "roles", "output_roles", "modes", "name", "class", "axes", "constants",
                 "gradients", "seed", "arena", "inputs", "outputs"}}

trial_write_provide (workers/judge/trial_stage.c) writes the request. The memory is mapped only while the request is
handled, because the judge may free it after the answer.

Messages to the pool:

- {"provider": {"python"}} or {"refused": message} is sent once, as the first message.
- {"doing": text, "allow": seconds, "tell"} reports that a preparation begins, such as an import or a compilation. The
  time of a preparation does not count toward the case's time limit. If "tell" is true, the pool shows the text to the
  user.
- {"doing": null} reports that the preparation has ended.
- {"provided": [{"shape", "dtype"} for each output], "coarse": [{"atol", "rtol"}] | null, "seconds", "prepared"} is the
  answer with results. "coarse" lists the tolerances of the outputs, or is null if the library computes as precisely as
  the definition. "prepared" is how many of the allowed seconds the preparations took.
- {"unavailable": message} is the answer if the library does not support the case; the message says why.
- {"failed": message, "accident", "fatal", "not_built"} is the answer after an exception. "accident" is true if the
  cause of the failure is transient. "fatal" is true if this process cannot be used again. "not_built", which may be
  absent, is true if the library failed to compile its kernels.
- {"unmapped": message} is the answer if the shared memory cannot be mapped because this machine refuses CUDA IPC."""

import ctypes

ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: other processes cannot read or change this process's memory

import contextlib
import faulthandler
import gc
import hashlib
import importlib
import json
import math
import os
import re
import signal
import sys
import time
import types

PR_SET_PDEATHSIG = 1
FOLDER = os.path.dirname(os.path.abspath(__file__))
# The largest accepted relative error of a gradient: the root mean square of the error divided by the root mean square
# of the gradient. flash-linear-attention uses the same value in its tests/ops/test_gated_delta.py.
GRADIENT_RATIO = 0.02
# How many times coarse_gradients draws random signs. With one draw, its estimate for a gradient of only two elements
# would depend too much on chance.
SIGN_DRAWS = 4
MESSAGE_MAX = 2000  # characters; the maximum length of an exception's message

# If the message of an exception contains one of these texts, the cause is a transient problem of this machine, and not
# an error of the library.
TROUBLE = ("No space left on device", "Disk quota exceeded", "Read-only file system", "Input/output error", "Could not find nvcc",
           "nvcc not found", "nvcc: not found", "Failed to find C compiler")
# If a compiler's output contains one of these texts, the cause is a transient problem: for example, files are missing,
# or the compiler was killed because memory ran out.
BUILD_TROUBLE = (*TROUBLE, "No such file or directory", "Permission denied", "annot allocate memory", "memory exhausted",
                 "Killed", "signal 9")
DIAGNOSED = re.compile(r"\berror ?[:#(]|static assertion|ptxas (error|fatal)")  # matches an error message of a compiler


# Loads libraries/common.py from its path and compiles its source text each time, as common.load does for tables.
common = sys.modules["reftest_providers"] = types.ModuleType("reftest_providers")
COMMON = os.path.join(FOLDER, "libraries", "common.py")
with open(COMMON, encoding="utf-8") as text:
    exec(compile(text.read(), COMMON, "exec", dont_inherit=True), common.__dict__)


def folder_of_tables():
    """Returns the directory of the tables, which say how libraries are called. Tests set REFTEST_PROVIDERS to another
    directory, whose tables have faults."""
    return os.environ.get("REFTEST_PROVIDERS") or os.path.join(FOLDER, "libraries")


# ---- available libraries ----


def version_of(table):
    """Returns (version, None), or (None, reason) if the table cannot be used. The version changes if anything changes
    that can affect an answer: the versions of the libraries, the table, or the Python files of the provider."""
    words, why = common.version_of(table)
    if why is not None:
        return None, why
    with open(table.file, "rb") as file:
        digest = hashlib.sha256(file.read())
    for name in ("provider.py", "libraries/common.py", "runner.py", "gradients.py", "arena.py", "tensors.py", "failures.py"):
        with open(os.path.join(FOLDER, name), "rb") as file:
            digest.update(file.read())
    return "%s (table %s)" % (words, digest.hexdigest()[:8]), None


def matrix(device_class):
    broken = {}
    tables = common.load_tables(folder_of_tables(), broken)
    common.add_checkouts(tables)
    out = {"providers": [], "folders": [], "program": os.path.realpath("/proc/self/exe")}
    for name, problem in broken.items():
        out["providers"].append({"name": name, "version": None, "why": "cannot load its table: " + text_of(problem),
                                 "families": {}, "never": {}, "on_request": []})
    for table in tables.values():
        version, why = version_of(table)
        families = {}
        for family, row in table.rows.items():
            families[family] = common.lacking(row, device_class) if why is None else why
        out["providers"].append({"name": table.name, "version": version, "why": why, "families": families,
                                 "never": table.never,
                                 "on_request": [family for family, row in table.rows.items() if row.on_request]})
    for path in sys.path:
        with contextlib.suppress(OSError):
            stat = os.stat(path)
            out["folders"].append({"path": path, "stamp": "%d.%d.%d" % (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)})
    return out


# ---- serving ----


def text_of(problem):
    text = str(problem).strip()
    errors = [line for line in text.splitlines() if "error:" in line or "error " in line.lower()[:40]]
    if len(text) > MESSAGE_MAX and errors:  # keeps the errors in a compiler's output, and omits its command lines
        text = "\n".join([text.splitlines()[0], *(line[:500] for line in errors[:4])])
    if len(text) > MESSAGE_MAX:
        text = text[: MESSAGE_MAX // 2] + "\n[...]\n" + text[-MESSAGE_MAX // 2 :]
    return "%s: %s" % (type(problem).__name__, text) if text else type(problem).__name__


def mendable(problem):
    """Returns true if a failure of a library is transient. After a transient failure, the case is judged without this
    library, but its verdict is not stored, so that the next run tries the library again. After a permanent failure, the
    verdict without this library is stored, and stays valid until the library, its table or the device changes. A failed
    build of kernels counts as permanent if the compiler printed an error that no text in BUILD_TROUBLE explains,
    because each new attempt would take minutes and fail again. Any other failed build counts as transient."""
    text = str(problem)
    if not isinstance(problem, common.NotBuilt):
        return any(words in text for words in TROUBLE)
    return any(words in text for words in BUILD_TROUBLE) or DIAGNOSED.search(text) is None


class Server:
    def __init__(self, runner, channel, device):
        self.runner, self.channel, self.device = runner, channel, device
        self.tables = common.load_tables(folder_of_tables())
        common.add_checkouts(self.tables)
        self.versions = {}
        self.used = set()  # (library, definition, whether it computed gradients) of each call so far
        self.prepared = 0.0
        self.since = 0.0
        self.doing = []  # (text, deadline) of each preparation in progress; one may begin within another
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
        """Reports that a preparation begins, or that the latest preparation has ended if `doing` is None. The time of a
        preparation does not count toward the case's time limit."""
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
            arena = request_arena(self.runner, request["arena"], self.channel.fds, self.device)
            reply = self.provide(request, arena)
        except self.runner.Unmapped as problem:
            reply = {"unmapped": str(problem)}
        except common.Unavailable as problem:
            reply = {"unavailable": str(problem)}
        except BaseException as problem:  # an exception such as SystemExit must end only the call, not this process
            text = text_of(problem)
            accident = mendable(problem) or self.runner.is_accident(problem, type(problem).__name__, text) and not isinstance(
                problem, ImportError)
            broken = "CUDA error" in text or type(problem).__name__ == "AcceleratorError"
            reply = {"failed": text, "accident": bool(accident or broken), "fatal": broken,
                     "not_built": isinstance(problem, common.NotBuilt)}
        while self.doing:
            self.progress(None, 0)
        if arena is not None:
            try:
                arena.close()
            except BaseException as problem:
                reply = {"failed": "after its answer: " + text_of(problem), "accident": True, "fatal": True}
        self.send(reply)
        return reply.get("fatal", False)

    def send(self, reply):
        """Sends an answer. If the answer contains NaN or infinity, which JSON cannot express, sends {"failed"}
        instead."""
        try:
            json.dumps(reply, allow_nan=False)
        except ValueError as problem:
            reply = {"failed": "its answer is invalid: " + text_of(problem), "accident": False, "fatal": False}
        self.channel.send(reply)

    def provide(self, request, arena):
        torch, runner = self.runner.torch, self.runner
        table = self.tables.get(request["provider"])
        row = table.rows.get(request["family"]) if table is not None else None
        if row is None:
            raise common.Unavailable("%s does not support %s" % (request["provider"], request["family"]))
        if table.name not in self.versions:
            self.versions[table.name] = version_of(table)
        why = self.versions[table.name][1] or common.lacking(row, request["class"])
        if why is not None:
            raise common.Unavailable(why)
        self.begin(table, row, request)
        inputs = {spec["name"]: arena.input(spec) for spec in request["inputs"]}
        calls = []  # the Call objects of this request
        runner.seed_everything(request["seed"], self.device)
        torch.set_float32_matmul_precision("highest")  # an imported library may have changed this setting
        start = time.perf_counter()
        with torch.no_grad():
            if request["gradients"]:
                result = self.differentiate(row, request, inputs, calls)
            else:
                kept = runner.latency.copies(torch, inputs) if request.get("bench") else None
                calls.append(common.Call(torch, request, inputs, self.device))
                result = row.call(calls[0])
            if self.device != "cpu":
                torch.cuda.synchronize()
            while self.doing:
                self.progress(None, 0)
            results = runner.tensors.unpack(result, request["outputs"])
            described = [self.store(arena, spec, value) for spec, value in zip(request["outputs"], results)]
            arena.finish()
        self.used.add((table.name, request["name"], request["gradients"]))
        seconds = max(0.0, time.perf_counter() - start - self.prepared)
        coarse = (self.coarse_gradients(row, request, inputs, results) if request["gradients"]
                  else common.coarse_of(row, calls[0], results))
        reply = {"provided": described, "coarse": coarse, "prepared": self.prepared, "seconds": seconds}
        if not request["gradients"] and kept is not None:
            reply["latency"] = self.measure(row, request, kept)
        return reply

    def measure(self, row, request, kept):
        """Measures a call of the row's function, including the conversions of inputs and outputs in this function. If
        the measurement raises an exception, only the latencies are missing in the answer, because the results are
        already stored."""
        torch = self.runner.torch
        try:
            with torch.no_grad():
                return self.runner.latency.measure(
                    torch, self.device, lambda **inputs: row.call(common.Call(torch, request, inputs, self.device)), kept)
        except Exception as problem:
            if "CUDA error" in text_of(problem) or type(problem).__name__ == "AcceleratorError":
                raise
            return None

    def begin(self, table, row, request):
        """Imports the library and reports the preparations that the call needs. The first call for a library or a
        definition may take minutes, because it compiles kernels. This time does not count toward the case's time
        limit."""
        for wanted in table.needs:
            if wanted.module is not None and wanted.module.split(".")[0] not in sys.modules:
                self.progress("importing %s" % wanted.module, common.IMPORT_S)
                importlib.import_module(wanted.module)
                self.progress(None, 0)
        hook = getattr(table.module, "on_import", None)
        if hook is not None:
            hook()
        if (table.name, request["name"], request["gradients"]) not in self.used and row.first_use_s > 0:
            self.progress("%s prepares its kernels for %s (only before their first "
                          "use)" % (table.name, request["name"]),
                          row.first_use_s)

    def differentiate(self, row, request, inputs, calls):
        """Computes gradients by applying torch's autograd to the row's function. If the library has backward kernels,
        autograd calls them."""
        given = [spec for spec in request["inputs"] if spec["name"].startswith("grad:")]
        forward = dict(request, inputs=[spec for spec in request["inputs"] if spec not in given],
                       outputs=[dict(spec, name=spec["name"][5:], scalar=False) for spec in given])

        def run(**arguments):
            calls.append(common.Call(self.runner.torch, forward, arguments, self.device))
            return row.call(calls[-1])

        try:
            results = self.runner.gradients.differentiate(self.runner, run, request, dict(inputs))
        except NotImplementedError as problem:
            raise common.Unavailable("it has no gradients for this case: %s" % text_of(problem).splitlines()[0])
        except self.runner.Mistake as problem:
            raise common.Unavailable("it has no gradients for this case: its outputs do not require a gradient") from problem
        for spec, result in zip(request["outputs"], results):
            if result is None:  # the library has no backward kernel for this input, and a zero gradient would be wrong
                raise common.Unavailable("it has no gradient for input '%s'" % spec["name"][2:])
        return results

    def coarse_gradients(self, row, request, inputs, results):
        """Returns the tolerances {"atol", "rtol"} of each gradient, for a row with coarse arithmetic. An element of a
        gradient is a sum of terms. If the terms do not cancel each other, the error is at most GRADIENT_RATIO times the
        gradient. If the terms cancel each other, the sum is small, but still has the rounding errors of all terms, so
        the tolerance must be computed from the size of the terms. To estimate this size, the function computes the
        gradients again with random signs for the elements of the inputs grad:Y, so that the terms no longer cancel each
        other."""
        if row.coarse is None:
            return None
        squares = [0.0] * len(results)
        for draw in range(SIGN_DRAWS):
            signed = self.differentiate(row, request, with_signs(self.runner.torch, inputs, draw), [])
            squares = [total + common.root_mean_square(x) ** 2 / SIGN_DRAWS for total, x in zip(squares, signed)]
        cancelled = [max(0.0, square ** 0.5 - common.root_mean_square(x)) for square, x in zip(squares, results)]
        return [{"atol": GRADIENT_RATIO * x if math.isfinite(x) else 0.0, "rtol": GRADIENT_RATIO} for x in cancelled]

    @staticmethod
    def store(arena, spec, result):
        """Stores a result in the shared memory, with the dtype and shape that the table's function returned. A result
        that is not contiguous is made contiguous first."""
        return arena.store(spec, result.contiguous() if hasattr(result, "contiguous") else result)


def with_signs(torch, inputs, draw):
    """Returns the inputs of a gradient case, with a random sign for each element of the inputs grad:Y."""
    generator = torch.Generator().manual_seed(draw)

    def signed(x):
        return x * (2 * torch.randint(2, x.shape, generator=generator) - 1).to(x)

    return {name: signed(x) if name.startswith("grad:") else x for name, x in inputs.items()}


def request_arena(runner, info, fds, device):
    """Maps the shared memory of one request. Returns a runner.Arena whose method `close` unmaps the memory."""
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
    runner = common.load("reftest_runner", os.path.join(FOLDER, "runner.py"))
    device = sys.argv[1]
    runner.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    faulthandler.enable()
    os.chdir("/")
    channel = runner.Channel(runner.move_high(3))
    refused = runner.import_torch(device)
    if refused is None:
        try:
            runner.warm_up(device, int(sys.argv[2]))
        except Exception as problem:
            refused = "torch cannot use %s: %s" % (device, text_of(problem))
    if refused:
        channel.send({"refused": refused})
        return 1
    channel.send({"provider": {"python": sys.version.split()[0]}})
    Server(runner, channel, device).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
