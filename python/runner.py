"""runner - the only process in which a reference runs; it never decides a verdict.

The pool starts this program as the *zygote* (zygote.py): a process that imports torch, does not touch the GPU, and
forks a new child on request. A child (the runner) runs the cases of one definition and is then killed, because a
reference may change torch, the interpreter or its process. A child runs the cases of several definitions only under two
conditions. First, the source code of each reference must be unable to change anything for later references
(isolation.py). To check this, another child, the reader, parses the source code; the reader runs no reference. Second,
each reference must leave the state of the child as it was before the reference (process_state.py).

Before every call of a reference, seed_everything seeds the generators of torch, CUDA, Python and NumPy. The copy of
seed_everything in python/testing/conftest_calls.py must seed the same generators. Tensors are in an arena (shared
memory) that the judge owns. No message of the runner contains a verdict, so a reference that forges a message cannot
forge a verdict. At worst, the judge checks outputs that the reference has not computed.

Pool and child exchange JSON lines on the child's socket:

- <- {"ready": true, "seconds": the child's start-up time, "gpu_free": the number of free bytes of GPU memory, 0 on the
  CPU} or {"refused": message}. If the child has its own PID namespace, the message "ready" comes with a descriptor of
  this namespace's /proc
- -> {"file": path}, with a descriptor of the file's content, is sent for each file that the reference may read; the
  child does not answer
- -> {"load": source, "name", "entry_point", "fitting", "makes_inputs", "memory", "memory_has_room", "processor_time",
  "kept", "attributes"}. If the source is that of a ground truth and not of a reference, the message also has the field
  "truth": the path of the source, for error messages. If the ground truth has several files, the message has, instead
  of the source, the fields that programs.py lists
- <- {"stateless": whether}, before code of a reference runs: whether it keeps nothing between two calls (isolation.py)
- <- {"loaded": true, "warm_up"} or {"error": …}
- -> {"make": …} and {"store": …}, which the judge writes (trial_custom_inputs.c), are sent only to a child that loaded
  code with "makes_inputs"; such a child never loads a reference
- <- {"made": [{"dtype", "shape"} | {"kind", "value"} | {"absent"} for each input], "taken": {name: [name, why]}, "others": [name]}
  and {"stored": true}
- -> {"unload": true}, after the last case of a reference, to a child that loaded this reference with "kept"
- <- {"ready": true} if the state of the child is the same as before the reference; else {"changed": what}, and the
child ends
- -> {"classify": number, "text": source} to a reader
- <- {"classified": number, "own": why the source needs a process of its own, or null, "stateless": whether the module
  of the source keeps nothing between two calls}
- -> {"run": …}, as the judge writes it (head of judge.c). If the child has not mapped the arena yet and the arena is a
  memfd, the message comes with this memfd
- <- {"ran": [{"shape", "dtype", "none", "grad", "overwrites"} for each output], "list", "touched": [name], "seconds"}
  or {"error": …}
  or, for a run with the field "extra", {"ran", "effects": [bool for each input] | null} or {"ran": [], "raised": message}
  or {"unmapped": message}

The fields of these messages:

- {"error": {"message", "line", "accident", "limit", "lacks_memory", "fatal", "raised", "certain", "needs_gpu",
  "needs_module"}} describes an error of the reference; line 0 means that the line is unknown.
- "accident" is true if this machine and not the reference's source may have caused the error (no memory, a missing
  module, a CUDA error).
- "limit" is "memory_limit", "process_limit" or "file_limit" if the reference reached a limit of the sandbox, else null.
- "lacks_memory" is true if the reference ran out of memory because the machine or the GPU had too little available, and
  not because "memory" was too small. The reference may succeed when no other process uses memory.
- "fatal" is true if this process must not be used again.
- "raised" is true if the code raised an exception, and false if runner.py found the mistake. The pool reads this field
  only from a child that makes inputs.
- "certain" is true if the reference would fail with any inputs. "needs_gpu" is true if the reference failed because
  torch found no GPU. "needs_module" is true if the reference failed because a module is not installed.
- "makes_inputs", which may be absent, means that the source is loaded to make inputs. Its value says whether the source
  is the definition's "init" code or its "reference".
- "taken" has an entry for each input that the code returned under another name: this other name, and the reason why its
  value is used for the input (see taken_instead in tensors.py).
- "others" lists the returned names that are not names of inputs.
- "entry_point" is the name of the function that is called; "run()" below stands for it.
- "fitting", which may be absent, is {"left_out": [name], "inputs": {name: [argument, optional]}}; see fitted in arguments.py.
- "warm_up" says how the warm-up of the child ended: "complete", "interrupted by a request", or "failed: " and why. It is
  null if the child had none.
- "attributes", which may be absent, lists the names of attributes that no class of Python or torch may have, separated by
  spaces: the code uses these attributes, and the engine has only found that the code gives them to objects of its own.
- "kept", which may be absent, is true if the child may load another reference after this one.
- "memory" is the number of bytes that the reference may use besides the tensors in the arena. "memory_has_room" is
  false if the user has set a memory limit so small that unused holes in malloc's heap could take up much of it.
- "processor_time" is the number of seconds of processor time that each process of the reference may use; 0: no limit.
- "none" is true if the output is the gradient of an input for which autograd returned no gradient; the output then
  contains zeros.
- "grad" is true if the output requires a gradient, and "overwrites" is true if the output uses the memory of an earlier
  call's output.
- "list" is true if run() returned its outputs in a list and not in a tuple.
- "touched" lists the inputs to which the reference wrote, even if they have their old values again. (Torch counts the
  writes to each tensor.)
- "effects" says for each input whether some output has a nonzero gradient with respect to the input; null if there are
  no gradients.
- "unmapped" reports that the arena cannot be mapped because this machine refuses CUDA IPC."""

import contextlib
import ctypes
import faulthandler
import fcntl
import functools
import gc
import inspect
import linecache
import os
import random
import resource
import select
import shutil
import sys
import time
import types

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
READER_MEMORY = 1 << 30  # bytes that a reader may use to parse source code
KEPT_GPU_MEMORY = 1 << 30  # bytes that torch's allocator may keep between two cases
# Constants of keep_freed_memory. M_MMAP_MAX is an option from malloc.h, and MAPPINGS is its default value in glibc.
# Freed memory is reused only if the arena has at most ARENA_WITHOUT_MAPPINGS bytes and "memory_has_room" is true: then
# the holes in malloc's heap are small compared with the reference's memory limit.
M_MMAP_MAX, MAPPINGS, ARENA_WITHOUT_MAPPINGS = -4, 65536, 256 << 20
# An option from malloc.h: malloc overwrites freed memory with the byte that is passed as the option's value, and new
# memory with the complement of this byte.
M_PERTURB = -6
HELD_OUTPUTS = 1 << 26  # a call's outputs stay alive during the next two calls if they have at most this many bytes
OLDEST_TORCH = (2, 4)
# An environment variable that requests one hardware queue per CUDA context. By default, the driver creates eight
# queues, which doubles the time to create and destroy a context (bench/contexts.py). With one queue, fewer streams of a
# reference run concurrently, which does not change its results. If the user has set the variable, its value is not
# changed.
FEW_QUEUES = ("CUDA_DEVICE_MAX_CONNECTIONS", "1")

FOLDER = os.path.dirname(os.path.abspath(__file__))
# The audit events of Python that use a file (docs.python.org/3/library/audit_events.html), each with the index of the
# argument that is the path.
REACHES = {"open": 0, "import": 1, "os.listdir": 0, "os.scandir": 0, "os.readlink": 0, "ctypes.dlopen": 0}
REACHES_ALL = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.",
               "urllib.", "ftplib.", "http.", "smtplib.", "sqlite3.", "syslog.")
OWN_FILES = ("/dev/null", "/dev/nvidia", "/proc/driver/nvidia", "<")  # "<": "<reference>" is not a file

libc = ctypes.CDLL(None, use_errno=True)


def compiled(name):
    """Compiles a file from this file's directory, which is not on sys.path. Does not use Python's cached byte code,
    which may be out of date: if a file is edited twice within a second and its size does not change, Python does not
    notice the second edit."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


def module_of(name, code):
    """Makes a module from a compiled file. Other modules can import it as reftest_NAME."""
    module = sys.modules["reftest_" + name] = types.ModuleType("reftest_" + name)
    module.__file__ = code.co_filename
    exec(code, module.__dict__)
    return module


def beside(name):
    return module_of(name, compiled(name))


gradients = beside("gradients")
programs = beside("programs")
latency = beside("latency")
fitted = beside("arguments").fitted
isolation, process_state = beside("isolation"), beside("process_state")
library_attributes = beside("library_attributes")
failures, sandbox, packages = beside("failures"), beside("sandbox"), beside("packages")
# These modules need torch, so they are executed only when torch is imported. Their files are read and compiled here,
# because the sandbox later hides this file's directory.
NEED_TORCH = [(name, compiled(name)) for name in ("tensors", "arena", "exercises")]
Channel, Zygote = beside("channel").Channel, beside("zygote").Zygote
Sandbox, Mistake, Lacking = sandbox.Sandbox, failures.Mistake, failures.Lacking
is_accident, name_of, text_of = failures.is_accident, failures.name_of, failures.text_of


# ---- a child ----


class Child:
    def __init__(self, sock, pipe, options, sandbox, folder):
        os.setsid()  # so that the processes that a reference starts can be killed together
        self.channel = Channel(move_high(sock))
        redirect(pipe)
        sandbox.enter(folder)
        self.sandbox = sandbox
        self.device = options["device"]
        self.threads = options["threads"]
        self.arena = None
        self.run = self.fitting = None
        self.subject = "the reference"  # the name of the loaded code in messages
        self.made = None  # the inputs that the code made last, by name
        self.filename = ""
        # The first thing that the loaded code may have used besides its inputs and torch: "opened /etc/hostname"
        self.reached = None
        self.is_watched = False  # whether the audit hook that sets `reached` is installed
        self.warm_up = None  # how the warm-up ended: "complete", "interrupted …", or "failed: …"
        self.earlier = [[], []]  # outputs of the last two calls, kept alive so that their memory is not reused
        self.pid = os.getpid()
        self.files = os.path.join(folder, "files")  # the folder for copies of the files that the reference may read
        self.has_files = False
        self.solution = os.path.join(folder, "solution")  # the folder for the source files of a solution
        self.own_modules = ()  # the modules that the files of the solution define
        self.outputs = []  # the field "outputs" of the current case
        self.frees = None  # how often the GPU memory of this process was freed, if the process may be kept
        self.before = None  # the state of this process before its first reference, if the process may be kept

    def read_texts(self):
        """Runs as a reader: parses the source code of references, and tells which references need their own process.
        Runs none of it."""
        self.sandbox.limit_memory(READER_MEMORY, False)
        self.channel.send({"ready": True, "seconds": 0})
        while True:
            message = self.channel.wait()
            if message is None:
                return
            own = isolation.needs_own(message["text"], self.device != "cpu")
            self.channel.send({"classified": message["classify"], "own": own,
                               "stateless": isolation.is_stateless(message["text"])})

    def serve(self):
        try:
            seconds = warm_up(self.device, self.threads)
        except Exception as problem:
            self.channel.send({"refused": "torch cannot use %s: %s" % (self.device, text_of(problem))})
            return
        proc = self.sandbox.open_proc()
        self.channel.send({"ready": True, "seconds": seconds, "gpu_free": free_gpu_memory(self.device)}, proc)
        if proc is not None:
            os.close(proc)
        self.warm_on()
        while True:
            message = self.channel.wait()
            if message is None:
                return
            if "file" in message:
                self.keep_file(message["file"])
                continue
            if "unload" in message:
                changed = self.unload()
                self.channel.send({"ready": True, "seconds": 0} if changed is None else {"changed": changed})
                if changed is not None:
                    return
                continue
            try:
                answer = self.answer(message)
            except BaseException as problem:  # sys.exit and KeyboardInterrupt must end only the case, not this process
                answer = {"error": self.error_of(problem)}
            if self.reached is not None:
                answer["reached"] = self.reached
            self.end_copies()
            self.tidy()
            self.channel.send(answer)

    def answer(self, message):
        if "load" in message:
            return self.load(message)
        if "make" in message:
            return self.make(message["make"])
        if "store" in message:
            return self.store(message["store"])
        return self.case(message["run"])

    def warm_on(self):
        """Runs warm-up steps until a request arrives, and stores in `warm_up` how the warm-up ended. If a step fails,
        the warm-up ends, but this process continues: a case that needs the same step will report the error. If the
        device is broken, this process ends."""
        self.warm_up = "interrupted by a request"
        try:
            for step in further_steps(self):
                if self.channel.bytes or select.select([self.channel.socket], [], [], 0)[0]:
                    return
                step()
                finish_work(self.device)
            self.warm_up = "complete"
        except Exception as problem:
            self.warm_up = "failed: %s: %s" % (name_of(problem), text_of(problem)[:200])
            finish_work(self.device)  # raises an exception if the device is broken; this ends the process

    def rehearse(self):
        """Does what `load` does before a reference runs, and then runs a small reference. Installs the audit hook
        first, because Python also calls this hook while it runs a real reference."""
        self.sandbox.limit_processor_time(0, True)  # sets no limit
        self.watch_reach()
        rehearse()

    def keep_freed_memory(self, arena):
        """Lets malloc reuse the memory of freed large tensors. By default, malloc maps new pages for each tensor above
        a threshold (workers/pool/reference_environment.c) and unmaps these pages when the tensor is freed. This costs
        time, because Linux must clear each new page. If the case is large or the user has set a small memory limit,
        malloc keeps its default: memory that is kept for reuse leaves unused holes in the heap, and these holes count
        toward the memory limit."""
        small = self.device == "cpu" and arena["bytes"] <= ARENA_WITHOUT_MAPPINGS and self.has_room
        libc.mallopt(M_MMAP_MAX, 0 if small else MAPPINGS)

    def end_copies(self):
        """Exits if this process is a copy that the reference has created by os.fork(), because only the original
        process may answer."""
        if os.getpid() != self.pid:
            os._exit(0)

    def tidy(self):
        """Flushes printed text before the answer is sent, and frees torch's cached GPU memory because the judge needs
        memory."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # the reference may have replaced sys.stdout
                pass
        try:
            if self.device != "cpu" and torch.cuda.memory_reserved() > KEPT_GPU_MEMORY:
                gc.collect()  # a reference cycle may keep tensors alive
                self.free_gpu_memory()
        except BaseException:  # raised if the CUDA context is broken, which the answer reports
            pass

    def keep_file(self, path):
        """Copies the file `path`, which the reference may read, to the folder that will be the reference's working
        directory. The copy can be trusted, because only this runner can access it and no reference has run yet. `path`
        has no ".."."""
        content = self.channel.fds.pop(0)
        place = os.path.join(self.files, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(content, "rb") as source, open(place, "xb") as out:
            source.seek(0)
            shutil.copyfileobj(source, out)
            os.fchmod(out.fileno(), 0o444)
        self.has_files = True

    def enter_files(self):
        for folder, _, _ in os.walk(self.files):
            os.chmod(folder, 0o555)
        os.chdir(self.files)

    def load(self, message):
        if self.has_files:
            self.enter_files()
        self.wanted_memory, self.has_room = message["memory"], message["memory_has_room"]
        kept = message.get("kept", False)
        self.memory = self.sandbox.limit_memory(self.wanted_memory, kept)
        self.sandbox.limit_processor_time(message["processor_time"], kept)
        limit_gpu_memory(self.device, self.memory)
        if "files" in message:
            return self.load_program(message)
        if kept and self.before is None:
            exercises.settle(self.device)
            self.begin_erasing()
            self.before = self.state()
        self.watch_reach()
        self.look_for_attributes(message)
        # The file name is the same for all definitions, because equal references must give equal messages.
        source, self.filename = message["load"], "<reference>"
        if message.get("makes_inputs"):
            self.subject, self.filename = "it", "<%s>" % message["makes_inputs"]
        if "truth" in message:
            self.subject, self.filename = message["truth"], "<%s>" % message["truth"]
        # linecache provides the source lines for tracebacks and for inspect, which triton and torch.compile use.
        linecache.cache[self.filename] = (len(source), None, source.splitlines(True), self.filename)
        module = types.ModuleType("reftest_reference")
        module.__file__ = self.filename
        sys.modules[module.__name__] = module
        self.defaults = process_defaults()
        if "truth" not in message and not message.get("makes_inputs"):
            self.channel.send({"stateless": isolation.is_stateless(source)})
        exec(compile(source, self.filename, "exec", dont_inherit=True), module.__dict__)
        self.run = module.__dict__.get(message["entry_point"])
        if not callable(self.run):
            raise Mistake("%s does not define a function named %s" % (self.subject, message["entry_point"]))
        if message["entry_point"] != "run" and not message.get("makes_inputs") and "run" in module.__dict__:  # others would call run
            raise Mistake("the reference defines the function run() dynamically, so reftest does not find run() in the "
                          "source and would call %s instead; define run() with a def statement at the top level of the "
                          "source"
                          % message["entry_point"])
        self.fitting = message.get("fitting")
        return {"loaded": True, "warm_up": self.warm_up}

    def load_program(self, message):
        """Loads a solution. The solution's files are in a folder that only this runner uses."""
        self.subject = message["truth"]
        self.filename = os.path.join(self.solution, message["entry_file"])
        self.defaults = process_defaults()
        self.own_modules = programs.modules_of(message["files"])
        programs.write_files(message["files"], self.solution)
        self.watch_reach()
        self.look_for_attributes(message)
        if message["build"] == "none":
            found = programs.load_python(message, self.solution, self.filename)
        else:
            found = programs.load_compiled(message, self.solution, self.subject, Mistake, Lacking)
        function = found.get(message["entry_point"])
        if not callable(function):
            raise Mistake("%s: %s does not define a function named %s"
                          % (self.subject, message["entry_file"], message["entry_point"]))
        self.run = programs.by_position(function, message["outputs"], self.new_outputs)
        return {"loaded": True, "warm_up": self.warm_up}

    def new_outputs(self):
        """Returns tensors for the outputs of the current case. All their bytes are 255, so that no value is correct by
        chance."""
        made = []
        for spec in self.outputs:
            dtype, shape = tensors.dtype_of(spec["dtype"]), list(spec["shape"])
            if spec["dtype"] == "float4_e2m1":
                shape[-1] //= 2
            made.append(torch.empty(shape, dtype=dtype, device=self.device))
            if made[-1].numel() > 0:
                made[-1].view(-1).view(torch.uint8).fill_(255)
        return made

    def state(self):
        own = [module for name, module in list(sys.modules.items()) if name.startswith("reftest_")]
        return process_state.state(torch, self.device, (sys.modules["__main__"], *own))

    def unload(self):
        """Removes the reference from this process: its module, its outputs, and the arena with its inputs. Returns a
        text that names something that the reference changed in this process, or None."""
        if self.reached is not None or self.has_files or self.before is None:
            return "files"
        sys.modules.pop("reftest_reference", None)
        linecache.cache.pop(self.filename, None)
        self.run = self.fitting = self.made = None
        self.outputs = []
        self.earlier = [[], []]
        arena, self.arena = self.arena, None
        gc.collect()  # the reference's functions and their module refer to each other
        try:
            if arena is not None:
                arena.unmap()
            finish_work(self.device)
        except Exception as problem:
            return "the memory shared with the judge (%s)" % text_of(problem)
        if self.device == "cpu":
            libc.malloc_trim(0)
        elif gpu_memory_frees() != self.frees:  # memory that was not overwritten may belong to the next reference
            return "memory of the GPU"
        else:
            self.free_gpu_memory()
        after = self.state()
        self.reached = None  # forgets the files that self.state() opened
        return process_state.difference(self.before, after, self.threads)

    def begin_erasing(self):
        """Prepares a runner on a GPU for references that use uninitialised memory (torch.empty): such memory must not
        contain anything that an earlier reference computed."""
        if self.device != "cpu":
            overwrite_freed_memory()
            self.frees = gpu_memory_frees()

    def free_gpu_memory(self):
        """Frees the GPU memory that torch's allocator keeps for later tensors. In a runner that is kept, overwrites
        this memory first, because the driver can give it to a tensor of another reference. If torch's allocator has
        already returned memory to the driver on its own, that memory was not overwritten. Then this function does not
        update `frees`. unload compares `frees` with the allocator's count, and ends this process if they differ."""
        torch.cuda.synchronize()
        erase = self.before is not None and gpu_memory_frees() == self.frees
        if erase:
            erase_unused_gpu_memory()
        torch.cuda.empty_cache()
        if erase:
            self.frees = gpu_memory_frees()

    def watch_reach(self):
        """Resets `reached`, which then records the first of these events: the process opens or imports a file, connects
        to a socket or starts a process. Ignores files in the interpreter's own directories, and files that the
        definition declares. If a reference uses any other file, its verdict must not be stored, because a later change
        of this file would not make the verdict invalid. The function relies on Python's audit events, which a reference
        that wants to cheat can avoid. Python has no audit event for reads of the environment or the clock; the engine
        searches the source code of the reference for such reads."""
        self.reached = None
        if self.is_watched:  # the hook is installed only once, because it cannot be removed
            return
        self.is_watched = True
        own = (*interpreter_folders(), *folders_of([self.files, self.solution]))
        abspath, fspath, fsdecode, join, realpath = os.path.abspath, os.fspath, os.fsdecode, os.path.join, os.path.realpath

        def is_own(path):
            try:
                path = fsdecode(fspath(path))
                if path.startswith(OWN_FILES):
                    return True
                path = abspath(path)
            except (TypeError, ValueError):
                return True  # the event has a descriptor or None instead of a path
            return join(realpath(path), "").startswith(own) or join(path, "").startswith(own)

        def on_event(event, arguments):
            if self.reached is not None or event not in REACHES and not event.startswith(REACHES_ALL):
                return
            path = arguments[REACHES[event]] if event in REACHES else None
            if event == "import" and str(path).split(".")[0] in self.own_modules:
                return
            if event not in REACHES:
                self.reached = "caused Python's audit event %s" % event
            elif event == "ctypes.dlopen" and (path is None or "/" not in str(path)):
                return  # dlopen without a path: of the process itself, or of a system library
            elif path is not None and not is_own(path):
                self.reached = "%s %s" % ("imported" if event == "import" else "opened", str(path)[:200])

        sys.addaudithook(on_event)

    def look_for_attributes(self, message):
        """Sets `reached` if a class of Python or torch has one of the attributes in the message "load". Call this before
        the code runs, because the code could define classes, too."""
        shared = library_attributes.first_shared(message.get("attributes", "").split())
        if shared is not None:
            self.reached = "used the attribute '%s', which objects of Python or torch also have" % shared

    def case(self, case):
        if self.arena is None or self.arena.id != case["arena"]["id"]:
            try:
                self.arena = Arena(case["arena"], self.channel.fds, self.device)
            except Unmapped as problem:
                return {"unmapped": str(problem)}
            self.keep_freed_memory(case["arena"])
        while self.channel.fds:  # a request to a ground truth has a descriptor even if the arena is already mapped
            os.close(self.channel.fds.pop())
        self.outputs = case["outputs"]
        arguments = {spec["name"]: self.arena.input(spec) for spec in case["inputs"]}
        seed_everything(case["seed"], self.device)
        start = time.perf_counter()
        if "extra" in case:
            return self.extra_run(case, arguments)
        if case["gradients"]:
            this = sys.modules[__name__]
            run = fitted(gradients.undecorated(this, self.run), self.fitting)
            results = gradients.differentiate(this, run, case, arguments)
            self.end_copies()
            described = [self.arena.store_gradient(spec, result) for spec, result in zip(case["outputs"], results)]
            self.arena.finish()
            return {"ran": described, "seconds": time.perf_counter() - start}
        kept = latency.copies(torch, arguments) if case.get("bench") else None
        versions = {name: tensors.version_of(value) for name, value in arguments.items()}
        result = fitted(self.run, self.fitting)(**arguments)
        self.end_copies()
        left_behind(self.defaults, self.subject)
        touched = [name for name, value in arguments.items() if tensors.version_of(value) != versions[name]]
        results = tensors.unpack(result, case["outputs"], arguments)
        described = [self.arena.store(spec, result) for spec, result in zip(case["outputs"], results)]
        self.arena.finish()
        self.look_for_earlier(described, results, arguments)
        answer = {"ran": described, "list": type(result) is list, "touched": touched, "seconds": time.perf_counter() - start}
        if kept is not None:
            answer["latency"] = self.measure(kept)
        return answer

    def measure(self, kept):
        """Measures the reference on copies of the inputs. If the measurement raises an exception, the answer only lacks
        the latencies, because the outputs are already stored."""
        try:
            return latency.measure(torch, self.device, fitted(self.run, self.fitting), kept)
        except Exception as problem:
            if "CUDA error" in text_of(problem) or name_of(problem) == "AcceleratorError":
                raise
            return None
        finally:
            self.end_copies()

    def extra_run(self, case, arguments):
        """Calls the reference for a check that needs no ground truth. Reports an exception of the reference as a result
        and not as an error, because the inputs may be invalid for the operation."""
        wide, on_cpu = case["extra"] in ("float64", "nudged"), case["extra"] == "cpu"
        try:
            result, effects, arguments = self.called_for_check(case, arguments)
            self.end_copies()
            left_behind(self.defaults, self.subject)
            results = tensors.unpack(result, case["outputs"], arguments)
            if wide:
                results = [value.double() if spec["dtype"] == "float64" and isinstance(value, torch.Tensor) else value
                           for spec, value in zip(case["outputs"], results)]
            if on_cpu:
                results = [value.to(self.device) if isinstance(value, torch.Tensor) else value for value in results]
            described = [self.arena.store(spec, value) for spec, value in zip(case["outputs"], results)]
        except Exception as problem:
            self.end_copies()
            if "CUDA error" in text_of(problem) or name_of(problem) == "AcceleratorError":
                raise
            self.arena.staged.clear()
            with contextlib.suppress(Mistake):
                left_behind(self.defaults, self.subject)
            return {"ran": [], "raised": "the reference raised %s: %s" % (name_of(problem), text_of(problem)[:1000])}
        self.arena.finish()
        return {"ran": described, "effects": effects}

    def called_for_check(self, case, arguments):
        """Calls the reference for an extra run. Returns a tuple: the result of the reference; a list that says for each
        input whether the input affects the result, or None if this is unknown; and the arguments of the call."""
        if case["extra"] == "gradients":
            this = sys.modules[__name__]
            run = fitted(gradients.undecorated(this, self.run), self.fitting)
            return gradients.effects(this, run, arguments, case["outputs"])
        change = {"strided": tensors.as_strided, "float64": tensors.as_float64, "nudged": tensors.as_nudged, "cpu": tensors.as_cpu}.get(
            case["extra"], lambda value: value)
        with gradients.in_float64(torch) if case["extra"] in ("float64", "nudged") else contextlib.nullcontext():
            changed = {name: change(value) for name, value in arguments.items()}
            return fitted(self.run, self.fitting)(**changed), None, changed

    def make(self, request):
        """Calls the definition's code that makes inputs, and describes these inputs. The judge compares the description
        with the definition, and then requests the values with {"store"}."""
        seed_everything(request["seed"], self.device)
        made = self.called(request)
        self.end_copies()
        if not isinstance(made, dict):
            raise Mistake("the function returned a value of type %s, but must return a dict of inputs"
                          % type(made).__name__)
        given = {str(name): value for name, value in made.items() if not isinstance(value, dict)}
        for group in made.values():  # inputs may be grouped by call: {"plan": {…}, "run": {…}}
            for name, value in group.items() if isinstance(group, dict) else ():
                given.setdefault(str(name), value)
        own = {*self.fitting["inputs"], *(argument for argument, _ in self.fitting["inputs"].values())}
        given = tensors.tuples_apart(given, own)
        names = {}  # {input: the name under which the code returned its value, which may be the name of its argument}
        for name, (argument, _) in self.fitting["inputs"].items():
            names[name] = name if name in given or argument not in given else argument
        taken = tensors.taken_instead(request["inputs"], {name: value for name, value in given.items() if name not in names.values()},
                                      [spec["name"] for spec in request["inputs"] if names[spec["name"]] not in given])
        names.update((name, found) for name, (found, _) in taken.items())
        self.made = {spec["name"]: given.get(names[spec["name"]]) for spec in request["inputs"]}
        others = sorted(set(given) - set(names.values()))
        return {"made": [self.form_of(spec) for spec in request["inputs"]], "taken": taken,
                "others": [name[:200] for name in others[:100]]}

    def called(self, request):
        if request["call"] == "entrypoint":
            return self.run({**request["axes"], **request["scalars"]}, torch.device(self.device))
        parameters = inspect.signature(self.run).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        arguments = {**request["axes"], "device": self.device, "seed": request["seed"]}
        return self.run(**{name: value for name, value in arguments.items() if takes_any or name in parameters})

    def form_of(self, spec):
        """Describes the value that was made for an input. If the input is a Python scalar, a 0-D tensor is described in
        the same way as the number that it contains. If the definition declares a tensor and the code made a number,
        describes the number; the judge decides whether this number is allowed."""
        value = self.made[spec["name"]]
        if value is None:
            return {"absent": True}
        if isinstance(value, torch.Tensor):
            if spec["scalar"] and value.dim() == 0:
                value = value.item()
            elif value.device.type != torch.device(self.device).type:
                raise Mistake("the function made input '%s' on %s, but was asked to make it on %s"
                              % (spec["name"], value.device, self.device))
            else:
                shape, dtype = tensors.form_of(value)
                return {"shape": shape, "dtype": dtype}
        kind = next((name for one, name in ((bool, "bool"), (int, "int"), (float, "float")) if type(value) is one), None)
        if kind is None:
            raise Mistake("the function made a value of type %s for input '%s', which must be a %s"
                          % (type(value).__name__, spec["name"], "Python scalar" if spec["scalar"] else "tensor"))
        return {"kind": kind, "value": repr(value) if kind == "float" else str(int(value))}

    def store(self, request):
        arena = Arena(request["arena"], self.channel.fds, self.device)
        for spec in request["inputs"]:
            stored = arena.store(spec, self.made[spec["name"]])
            if (stored["shape"], stored["dtype"]) != (spec["shape"], spec["dtype"]):
                raise Mistake("input '%s' changed its shape or its dtype after it was made" % spec["name"])
        arena.finish()
        return {"stored": True}

    def look_for_earlier(self, described, results, arguments):
        """Records which outputs use the memory of an earlier call's outputs. An output that uses the memory of an input
        does not count: an operation that updates a buffer in place may return this buffer."""
        given = {tensors.memory_of(value) for value in arguments.values()} | {None}
        held = {tensors.memory_of(output) for outputs in self.earlier for output in outputs}
        for item, result in zip(described, results):
            item["overwrites"] = tensors.memory_of(result) in held - given
        own = [result for result in results if tensors.memory_of(result) not in given]
        self.earlier = [self.earlier[1], own if sum(map(tensors.bytes_of, own)) <= HELD_OUTPUTS else []]

    def error_of(self, problem):
        try:
            reached = self.reached
            limit = failures.limit_of(problem, self.sandbox.has_folders)
            if name_of(problem) == "OutOfMemoryError" and has_gpu_memory(self.device, self.memory):
                limit = failures.MEMORY
            self.reached = reached  # the file that limit_of opens does not matter
            described = failures.describe(problem, self.filename, self.run is None, self.subject)
            # The message must not contain the folder's name, because this name differs in each run.
            described["message"] = described["message"].replace(self.solution + "/", "")
            if limit is None:
                lacks_memory = failures.is_lack_of_memory(problem, name_of(problem), text_of(problem))
                return dict(described, lacks_memory=lacks_memory)
            message = "%s %s\n%s" % (self.subject, self.sentence_of(limit), described["message"])
            return dict(described, message=message[:failures.MESSAGE_MAX], accident=True, limit=limit.reason,
                        lacks_memory=limit is failures.MEMORY and self.memory < self.wanted_memory)
        except BaseException as second:  # the __str__ of the first exception may have raised this one
            names = (name_of(problem), name_of(second))
            message = "%s raised %s, whose message cannot be shown (%s)" % (self.subject, *names)
            return {"message": message, "line": 0, "accident": False, "fatal": False}

    def sentence_of(self, limit):
        """Returns a sentence that says which limit the reference reached, and what its author can do."""
        if limit is not failures.MEMORY:
            return limit.sentence % {"files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
                                     "size": failures.size_text(resource.getrlimit(resource.RLIMIT_FSIZE)[0])}
        if self.memory < self.wanted_memory:
            return ("ran out of memory: it may use %s, nine tenths of what this machine had available; use a smaller size "
                    "(--sizes small) or another machine" % failures.size_text(self.memory))
        return "ran out of memory: it may use %s; --memory SIZE changes this limit" % failures.size_text(self.memory)


def folders_of(paths):
    """Returns the real paths of the folders, each with a slash at the end. Omits the root folder."""
    return tuple(folder for folder in (os.path.join(os.path.realpath(path), "") for path in paths if path) if folder != "/")


@functools.cache
def interpreter_folders():
    """Returns the folders of the interpreter and of reftest; the verdict on a reference that uses files in these
    folders may still be stored (see watch_reach). The zygote calls this function once for all children, because
    resolving a path takes a system call for each part of the path."""
    return folders_of([*sys.path, FOLDER, os.path.dirname(os.__file__)])


def move_high(fd):
    """Moves the file descriptor to a high number, because a reference may write to or close all descriptors with small
    numbers."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 512)
    except OSError:
        return fd
    os.close(fd)
    return high


def redirect(pipe):
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(pipe, 1)
    os.dup2(pipe, 2)
    os.close(null)
    os.close(pipe)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    faulthandler.enable(sys.stderr)  # prints the line of Python code that crashed the process


def warm_up(device, threads):
    """Initialises torch before the first case, and returns how many seconds the initialisation took. On a GPU, this
    function only creates the CUDA context. The child does the other steps of the initialisation (see further_steps)
    while it waits for a request."""
    start = time.perf_counter()
    torch.set_num_threads(threads)
    if device == "cpu":
        exercises.exercise(device)
    else:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
    finish_work(device)
    return round(time.perf_counter() - start, 4)


def finish_work(device):
    if device != "cpu":
        torch.cuda.synchronize()


def limit_gpu_memory(device, size):
    """Limits the GPU memory that torch's allocator uses in this process. The limit protects other processes from a
    reference that uses too much memory by mistake, but not from a hostile reference, which could remove the limit."""
    if device != "cpu":
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, size / total), device)


def free_gpu_memory(device):
    """Returns how many bytes of GPU memory are free, or 0 on the CPU."""
    return 0 if device == "cpu" else torch.cuda.mem_get_info(device)[0]


def has_gpu_memory(device, size):
    """Returns true if the GPU has enough free memory for this process to reach the limit `size`. If an allocation has
    failed and this function returns true, the cause was the limit, and not a lack of GPU memory."""
    if device == "cpu":
        return False
    free, total = torch.cuda.mem_get_info(device)
    return size < total and free >= size - torch.cuda.memory_reserved(device)


def overwrite_freed_memory():
    """Makes malloc overwrite each block of memory when the block is freed and when it is allocated. Blocks in malloc's
    caches of small blocks would not be overwritten, so workers/pool/reference_environment.c turns these caches off."""
    libc.mallopt(M_PERTURB, 255)


def gpu_memory_frees():
    """Returns how often torch's allocator has returned memory to the driver."""
    return torch.cuda.memory_stats()["num_device_free"]


def erase_unused_gpu_memory():
    """Sets all bytes to 255 in the GPU memory that torch's allocator holds but no tensor uses. Floating-point numbers
    in this memory are then NaN, and integers are -1."""
    memset = driver().cuMemsetD8_v2
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] != "active_allocated":
                error = memset(ctypes.c_uint64(address), ctypes.c_ubyte(255), ctypes.c_size_t(block["size"]))
                if error != 0:
                    raise RuntimeError("cuMemsetD8: error %d" % error)
            address += block["size"]


def further_steps(child):
    return exercises.steps(child.device) if child.device != "cpu" else [child.rehearse]


def seed_everything(seed, device):
    """Seeds the generators of torch, CUDA, Python and NumPy. torch.manual_seed is not used, because it records a call
    stack for every unused device. The copy of this function in python/testing/conftest_calls.py must seed the
    same generators."""
    torch.default_generator.manual_seed(seed)
    if device != "cpu":
        torch.cuda.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


# ---- side effects of a reference ----


# The settings of torch that a reference must not change, because they can change the results or the speed of later
# code. Each row has the name of a setting, and the names of the torch functions that read it and set it. SETTINGS in
# python/testing/conftest_calls.py must have the same rows.
SETTINGS = [
    ("default dtype", "get_default_dtype", "set_default_dtype"),
    ("default device", "get_default_device", "set_default_device"),
    ("grad mode", "is_grad_enabled", "set_grad_enabled"),
    ("deterministic mode", "get_deterministic_debug_mode", "set_deterministic_debug_mode"),
    ("number of threads", "get_num_threads", "set_num_threads"),
]


def process_defaults():
    return {name: getattr(torch, read)() for name, read, _ in SETTINGS}


def left_behind(before, who):
    """Restores all settings of torch, and raises a Mistake if the reference changed one of them."""
    now = process_defaults()
    changed = [name for name in now if now[name] != before[name]]
    if not changed:
        return
    for name, _, write in SETTINGS:
        getattr(torch, write)(before[name])
    raise Mistake("%s changes torch's %s to %s (it was %s) and does not restore it, so the caller's next computations "
                  "change, too" % (who, changed[0], now[changed[0]], before[changed[0]]))


# ---- start ----

REHEARSED = """import torch

SMALL = 1e-6


@torch.no_grad()
def run(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + SMALL) * weight.float()).to(x.dtype)
"""


def rehearse():
    """Loads a small reference and runs it on the CPU, in the same way as a child runs a reference. In the zygote, the
    rehearsal imports the modules that torch imports only when they are first used. A child shares its memory pages with
    the zygote, and Linux copies a page when the child first writes to it. In a child that waits for a request, the
    rehearsal causes these copies before the request arrives. The rehearsal has no other lasting effect."""
    names = {}
    before = process_defaults()
    interpreter_folders()
    exec(compile(REHEARSED, "<rehearsal>", "exec", dont_inherit=True), names)
    specs = [{"name": name, "shape": shape, "dtype": "bfloat16", "offset": offset, "scalar": False}
             for name, shape, offset in (("x", [4, 64], 0), ("weight", [64], 1024), ("y", [4, 64], 2048))]
    arena = Arena.private(4096)
    arguments = {spec["name"]: arena.input(spec) for spec in specs[:2]}
    fitting = {"left_out": [], "inputs": {name: [name, False] for name in arguments}}
    seed_everything(0, "cpu")
    for _ in range(2):
        for value in arguments.values():
            tensors.version_of(value)
        result = fitted(names["run"], fitting)(**arguments)
        left_behind(before, "the rehearsal")
        for spec, value in zip(specs[2:], tensors.unpack(result, specs[2:], arguments)):
            arena.store(spec, value)


def import_torch(device):
    """Imports torch, and loads the modules that need it. Returns None, or a message that says why this interpreter cannot
    be used."""
    global torch, tensors, exercises, Arena, Unmapped, driver
    gc.disable()  # scanning imported objects, which stay alive, would take a tenth of the import time
    try:
        import torch
    except BaseException as problem:
        return "%s cannot import torch: %s: %s" % (sys.executable, type(problem).__name__, text_of(problem))
    finally:
        gc.enable()
    version = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        return "%s has torch %s; 2.4 or newer is required" % (sys.executable, torch.__version__)
    if device != "cpu" and torch.version.cuda is None:
        return "%s has torch %s, which was built without CUDA and cannot use %s" % (
            sys.executable, torch.__version__, device)
    tensors, arena, exercises = (module_of(*file) for file in NEED_TORCH)
    Arena, Unmapped, driver = arena.Arena, arena.Unmapped, arena.driver
    return None


def main():
    options = {"device": sys.argv[1], "threads": int(sys.argv[2])}
    library = int(sys.argv[3])  # descriptor of a sealed copy of libreftest_sandbox.so
    root = sys.argv[4] and os.path.abspath(sys.argv[4])  # absolute, because the working directory changes below
    channel = Channel(3)
    python = packages.python_version(packages.find_packages() if sys.flags.no_site else [])
    # Do not search for modules in this file's directory or in the working directory.
    sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))]
    os.chdir("/")
    if options["device"] != "cpu":
        os.environ.setdefault(*FEW_QUEUES)
    try:
        sandbox = Sandbox(library, options["device"], root, sys.argv[5])
    except OSError as problem:
        channel.send({"refused": text_of(problem)})
        return 1
    refused = import_torch(options["device"])
    if refused:
        channel.send({"refused": refused})
        return 1
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    torch.set_num_threads(1)  # one thread, because no other thread may be running when this process forks
    exercises.exercise("cpu")
    exercises.exercise_library()
    library_attributes.import_late_modules()
    rehearse()
    gc.collect()
    gc.freeze()
    channel.send({"template": {"torch": torch.__version__, "cuda": torch.version.cuda,
                               "python": python, "layers": sandbox.layers}})
    zygote = Zygote(channel, options, sandbox, Child)
    try:
        zygote.serve()
    finally:
        zygote.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
