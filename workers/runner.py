"""runner - the only process in which a reference runs; it answers and never decides.

Started by the pool as a *template*: it imports torch, touches no GPU, and forks a fresh child whenever asked. A child
runs the cases of one definition and is then killed, so what a reference does to torch, to the interpreter or to its own
process ends with it. Tensors lie in an arena that the judge owns; what is said here holds no verdict, and whatever a
reference forges can only make the judge look at outputs that are not there.

Pool and template, JSON lines on descriptor 3:
  <- {"template": {"torch", "cuda", "python"}} | {"refused": sentence}
  -> {"fork": slot} with two descriptors: the child's socket, and the pipe for what it prints
  <- {"forked": slot, "pid"}
  <- {"exit": pid, "status"}          wait status; the child stays a zombie, so that its pid means nobody else, until
  -> {"reap": pid}
Pool and child, JSON lines on the child's socket:
  <- {"ready": true, "seconds": what it took} | {"refused": sentence}
  -> {"load": source, "name"}         <- {"loaded": true} | {"error": …}
  -> {"run": …} as the judge wrote it (head of judge.c), with the memfd of the arena when that is a new one
  <- {"ran": [{"shape", "dtype", "none", "grad"} for each output], "list", "touched": [name], "seconds"} | {"error": …} |
     {"unmapped": sentence}
{"error": {"message", "line", "accident", "fatal"}}: what the reference did wrong, at which of its lines (0: unknown);
`accident`: not the reference's text but this machine may be at fault (no memory, a missing module, a CUDA error);
`fatal`: this process is of no more use. "none": autograd gave this input no gradient; zeros lie in its place. "grad": the
output requires a gradient. "list": the outputs came in a list, not in a tuple. "touched": inputs that torch counts a write
to, whatever they hold now. "unmapped":
the arena could not be mapped; CUDA IPC is refused here."""

import ctypes
import faulthandler
import fcntl
import gc
import json
import linecache
import mmap
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
import types

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
MESSAGE_MAX = 16384  # characters of a traceback that are kept, half from each end
KEPT_GPU_MEMORY = 1 << 30  # bytes that torch may hold on to between two cases
HELD_OUTPUTS = 1 << 26  # bytes of outputs that are held until the next call has been made
OLDEST_TORCH = (2, 4)
# Of a CUDA context's hardware queues to the device: the driver makes eight, one process at a time, and with them a context
# takes twice as long to make and to end (bench/contexts.py). What a reference computes does not depend on how many of
# its streams may run at once. Who has set it knows why.
FEW_QUEUES = ("CUDA_DEVICE_MAX_CONNECTIONS", "1")

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Audit events (docs.python.org/3/library/audit_events.html): which argument is the path that is reached.
REACHES = {"open": 0, "import": 1, "os.listdir": 0, "os.scandir": 0, "os.readlink": 0, "ctypes.dlopen": 0}
REACHES_ALL = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "pty.",
               "urllib.", "ftplib.", "http.", "smtplib.", "sqlite3.", "syslog.")
OWN_FILES = ("/dev/null", "/dev/nvidia", "/proc/driver/nvidia", "<")  # <reference>: no file

libc = ctypes.CDLL(None, use_errno=True)


def find_packages():
    """The interpreter was started without its site packages (-S): they are added here, and what a machine's administrator or
    user has for every Python program (sitecustomize, usercustomize) is not."""
    import site
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()


def beside(name):
    """The module in the file of this name beside this one, which is on no path. Of the text as it stands there: byte code
    that was kept of it would be told from it by its second and its size."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    module = types.ModuleType("reftest_" + name)
    module.__file__ = path
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)
    return module


gradients = beside("gradients")


class Channel:
    """JSON lines over a stream socket; the descriptors that come along wait in `fds`."""

    def __init__(self, fd):
        self.socket = socket.socket(fileno=fd)
        self.bytes = bytearray()
        self.fds = []

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def fill(self):
        """One read. False: the peer is gone."""
        data, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(8 * 4), socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.fds += struct.unpack("%di" % (len(content) // 4), content[: len(content) // 4 * 4])
        self.bytes += data
        return bool(data)

    def line(self):
        """The next message that has come whole, None: not yet."""
        end = self.bytes.find(b"\n")
        if end < 0:
            return None
        text = bytes(self.bytes[:end])
        del self.bytes[: end + 1]
        return json.loads(text)

    def wait(self):
        """The next message, None: the peer is gone."""
        while True:
            message = self.line()
            if message is not None:
                return message
            if not self.fill():
                return None


# ---- the template ----


class Template:
    def __init__(self, channel, options):
        self.channel = channel
        self.options = options
        self.children = {}  # pid of each child forked and not yet reaped: has its end been told?
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        self.wake_write = wake_write
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def serve(self):
        poll = select.poll()
        poll.register(self.channel.socket, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.wake:
                    os.read(self.wake, 4096)
                    self.tell_ends()
                elif not self.channel.fill():
                    return
            self.answer()

    def answer(self):
        while True:
            message = self.channel.line()
            if message is None:
                return
            if "fork" in message:
                self.fork(message["fork"])
            elif message.get("reap") in self.children:
                del self.children[message["reap"]]
                os.waitpid(message["reap"], 0)

    def fork(self, slot):
        sock, pipe = self.channel.fds[:2]
        del self.channel.fds[:2]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (self.wake, self.wake_write, self.channel.socket.fileno(), *self.channel.fds):
                    os.close(fd)
                Child(sock, pipe, parent, self.options).serve()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(sock)
        os.close(pipe)
        self.children[pid] = False
        self.channel.send({"forked": slot, "pid": pid})

    def tell_ends(self):
        for pid, told in list(self.children.items()):
            end = None if told else os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None:
                self.children[pid] = True
                status = end.si_status << 8 if end.si_code == os.CLD_EXITED else end.si_status
                self.channel.send({"exit": pid, "status": status})
        self.end_orphans()

    def end_orphans(self):
        """Whatever a reference started and left behind is a child of this process now: nobody knows it, end it."""
        for pid in children_of(os.getpid()):
            if pid not in self.children:
                kill(pid)
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def close(self):
        for pid in self.children:
            kill(pid)
        while True:
            left = children_of(os.getpid())
            for pid in left:
                kill(pid)
                os.waitpid(pid, 0)
            if not left:
                return


def kill(pid):
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except OSError:
            pass


def children_of(parent):
    try:  # a kernel that lists them
        with open("/proc/self/task/%d/children" % parent) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        pass
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                        found.append(int(name))
            except OSError:
                pass
    return found


# ---- a child ----


class Mistake(Exception):
    """What a reference did wrong without raising: a whole sentence."""


class Lacking(Mistake):
    """Not the reference's fault: this machine's torch is too old."""


class Child:
    def __init__(self, sock, pipe, parent, options):
        os.setsid()  # the whole tree that a reference starts can be killed as one group
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # the template is closed to debuggers, a reference may be opened
        self.channel = Channel(move_high(sock))
        redirect(pipe)
        limit_memory(options["device"])
        fence()
        self.device = options["device"]
        self.threads = options["threads"]
        self.arena = None
        self.run = None
        self.filename = ""
        self.reached = None  # what the reference did besides computing, as a sentence; the first such thing
        self.last = []  # the outputs of the call before, held so that no other tensor can get their memory
        self.pid = os.getpid()

    def serve(self):
        try:
            seconds = warm_up(self.device, self.threads)
        except Exception as problem:
            self.channel.send({"refused": "torch cannot use %s: %s" % (self.device, text_of(problem))})
            return
        self.channel.send({"ready": True, "seconds": seconds})
        self.warm_on()
        while True:
            message = self.channel.wait()
            if message is None:
                return
            try:
                answer = self.load(message) if "load" in message else self.case(message["run"])
            except BaseException as problem:  # sys.exit and KeyboardInterrupt included: they end a case, not us
                answer = {"error": self.error_of(problem)}
            if self.reached is not None:
                answer["reached"] = self.reached
            self.end_copies()
            self.tidy()
            self.channel.send(answer)

    def warm_on(self):
        """While nobody asks for anything. What fails here fails again where it is needed, unless the device is broken."""
        try:
            for step in further_steps(self.device):
                if self.channel.bytes or select.select([self.channel.socket], [], [], 0)[0]:
                    return
                step()
                finish_work(self.device)
        except Exception:
            finish_work(self.device)  # raises, and ends this process, if it is

    def end_copies(self):
        """A copy of this process that a reference made by os.fork() has nothing to write and nothing to say."""
        if os.getpid() != self.pid:
            os._exit(0)

    def tidy(self):
        """What was printed goes out before the answer; memory that torch keeps for later is the judge's to use now."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:  # the reference may have put anything in their place
                pass
        try:
            if self.device != "cpu" and torch.cuda.memory_reserved() > KEPT_GPU_MEMORY:
                gc.collect()  # a cycle may hold tensors
                torch.cuda.empty_cache()
        except BaseException:  # a broken context: the answer says so
            pass

    def load(self, message):
        # Of no definition's name: what is told of a reference is told of every definition that has the same.
        self.watch_reach()
        source, self.filename = message["load"], "<reference>"
        # Where tracebacks, inspect and everything built on it (triton, torch.compile) look for lines of the source.
        linecache.cache[self.filename] = (len(source), None, source.splitlines(True), self.filename)
        module = types.ModuleType("reftest_reference")
        module.__file__ = self.filename
        sys.modules[module.__name__] = module
        self.defaults = process_defaults()
        exec(compile(source, self.filename, "exec", dont_inherit=True), module.__dict__)
        self.run = module.__dict__.get("run")
        if not callable(self.run):
            raise Mistake("the reference defines no function named run")
        return {"loaded": True}

    def watch_reach(self):
        """From here on Python itself tells what is opened, imported, connected to and started. What lies in the interpreter's own
        folders is part of it; all else could be another thing the next time, and in no fingerprint. (An honest reference's
        doings: one that cheats has ways around. Environment and clock are not told of; the plan looks for their names.)"""
        own = tuple(os.path.join(os.path.realpath(p), "") for p in [*sys.path, FOLDER, os.path.dirname(os.__file__)] if p)
        own = tuple(p for p in own if p != "/")
        abspath, fspath, fsdecode, join, realpath = os.path.abspath, os.fspath, os.fsdecode, os.path.join, os.path.realpath

        def is_own(path):
            try:
                path = fsdecode(fspath(path))
                if path.startswith(OWN_FILES):
                    return True
                path = abspath(path)
            except (TypeError, ValueError):
                return True  # a descriptor that is open already, or nothing
            return join(realpath(path), "").startswith(own) or join(path, "").startswith(own)

        def told(event, arguments):
            if self.reached is not None or event not in REACHES and not event.startswith(REACHES_ALL):
                return
            path = arguments[REACHES[event]] if event in REACHES else None
            if event not in REACHES:
                self.reached = "it did what Python calls %s" % event
            elif event == "ctypes.dlopen" and (path is None or "/" not in str(path)):
                return  # of the libraries that are loaded, or of the system
            elif path is not None and not is_own(path):
                self.reached = "%s %s" % ("it imported" if event == "import" else "it opened", str(path)[:200])

        sys.addaudithook(told)
        self.watch_reach = lambda: None  # once: a hook stays

    def case(self, case):
        if self.arena is None or self.arena.id != case["arena"]["id"]:
            try:
                self.arena = Arena(case["arena"], self.channel.fds, self.device)
            except Unmapped as problem:
                return {"unmapped": str(problem)}
        arguments = {spec["name"]: self.arena.input(spec) for spec in case["inputs"]}
        seed_everything(case["seed"], self.device)
        start = time.perf_counter()
        if case["gradients"]:
            this = sys.modules[__name__]
            run = gradients.undecorated(this, self.run)
            results = gradients.differentiate(this, run, case, arguments)
            self.end_copies()
            described = [self.arena.store_gradient(spec, result) for spec, result in zip(case["outputs"], results)]
            self.arena.finish()
            return {"ran": described, "seconds": time.perf_counter() - start}
        versions = {name: version_of(value) for name, value in arguments.items()}
        result = self.run(**arguments)
        self.end_copies()
        left_behind(self.defaults)
        touched = [name for name, value in arguments.items() if version_of(value) != versions[name]]
        results = unpack(result, case["outputs"])
        described = [self.arena.store(spec, result) for spec, result in zip(case["outputs"], results)]
        self.arena.finish()
        given = {memory_of(value) for value in arguments.values()}  # operations that update a buffer return it
        own = [result if memory_of(result) not in given else None for result in results]
        held = {memory_of(result) for result in self.last}
        for item, output in zip(described, own):
            item["overwrites"] = output is not None and memory_of(output) in held
        self.last = [result for result in own if result is not None] if sum(map(bytes_of, own)) <= HELD_OUTPUTS else []
        return {"ran": described, "list": type(result) is list, "touched": touched, "seconds": time.perf_counter() - start}

    def error_of(self, problem):
        try:
            return describe(problem, self.filename, self.run is None)
        except BaseException as second:  # an exception whose own __str__ raises
            names = (type(problem).__name__, type(second).__name__)
            message = "the reference raised %s, which cannot be shown (%s)" % names
            return {"message": message, "line": 0, "accident": False, "fatal": False}


def move_high(fd):
    """Out of the way of references that write to, or close, every small descriptor."""
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
    faulthandler.enable(sys.stderr)  # a crash prints the line at which it happened


def limit_memory(device):
    """A reference that takes more than the machine has gets an exception; if that fails, it is the kernel's first
    choice. (On a GPU the limit would hit the driver's reservations.)"""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if device != "cpu":
        return
    available = field_kib("/proc/meminfo", "MemAvailable:")
    used = field_kib("/proc/self/status", "VmData:")
    if available:
        limit = (used + available * 9 // 10) * 1024
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))


def field_kib(path, name):
    with open(path) as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def fence():
    """Where the kernel has Landlock: no signal to, and no look into the memory of, any process but this one and those
    that it starts (pool, judge, template, other children). Elsewhere the pool notices killed workers and tries again.
    Landlock wants one kind of file access to rule over: making block devices, which is allowed nowhere from here on."""
    landlock_create_ruleset, landlock_restrict_self = 444, 446  # the same numbers on every architecture
    make_block, scope_signal = 1 << 11, 1 << 1
    attributes = struct.pack("QQQ", make_block, 0, scope_signal)
    ruleset = -1
    for size in (24, 8):  # the whole, or what a kernel before 6.12 knows: then memory only
        ruleset = libc.syscall(landlock_create_ruleset, attributes, ctypes.c_size_t(size), 0)
        if ruleset >= 0:
            break
    if ruleset < 0:
        return
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall(landlock_restrict_self, ruleset, 0)
    os.close(ruleset)


def warm_up(device, threads):
    """Whatever torch does only once, done before a case is waiting for it. On a GPU that is the context; the rest
    (further_steps) is done afterwards, as long as nobody is waiting. How many seconds it took."""
    start = time.perf_counter()
    torch.set_num_threads(threads)
    if device == "cpu":
        exercise(device)
    else:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
    finish_work(device)
    return round(time.perf_counter() - start, 4)


def finish_work(device):
    if device != "cpu":
        torch.cuda.synchronize()


def exercise(device):
    exercise_rows(device)
    exercise_product(device, torch.bfloat16)


def exercise_library():
    """The first calls of MKL, which looks at the processor in them and chooses kernels: where several threads of a child make
    them at once, under load, products of that call and of later ones were seen to differ in the last bits."""
    one, several = torch.ones(16, 192), torch.ones(8, 16, 192)
    torch.logsumexp(one @ one.T, -1)
    torch.softmax(several @ several.transpose(1, 2), -1) @ several
    torch.einsum("qhd,nhd->hqn", several.transpose(0, 1), several.transpose(0, 1))


def exercise_rows(device):
    x = torch.ones(4, 64, device=device, dtype=torch.bfloat16)
    y = (x.to(torch.float32).pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * x.float()
    y.to(torch.bfloat16).to(torch.float32).sum()
    seed_everything(0, device)


def exercise_product(device, dtype):
    torch.matmul(torch.ones(4, 64, device=device, dtype=dtype), torch.ones(64, 4, device=device, dtype=dtype))


def further_steps(device):
    """The way of tensors through the arena; libraries; and the code of kernels, which CUDA loads when one is first launched:
    what references launch most is launched here. In short steps, the most wanted first. None on the CPU."""
    if device == "cpu":
        return
    yield lambda: exercise_arena(device)
    yield lambda: exercise_rows(device)
    yield lambda: exercise_product(device, torch.bfloat16)
    for dtype in (torch.float32, torch.bfloat16):
        for common in (exercise_norm, exercise_gate, exercise_softmax):
            yield lambda common=common, dtype=dtype: common(device, dtype)
    yield lambda: exercise_product(device, torch.float32)


def exercise_arena(device):
    driver()
    memory = torch.zeros(256, device=device, dtype=torch.uint8)
    for dtype in (torch.bfloat16, torch.float32):
        place = torch.as_tensor(CudaBytes(memory.data_ptr(), 256), device=device).view(dtype).view(2, -1)
        place.copy_(place.clone())
    torch.cuda.memory_reserved()


def exercise_norm(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    x.square().mean(-1, keepdim=True).sqrt().reciprocal() * x + x - x / (x * 2 + 1e-6)


def exercise_gate(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    y = torch.nn.functional.silu(x) * torch.sigmoid(-x).exp().clamp(min=0)
    torch.where(y > 0, y, torch.zeros_like(y)).contiguous()


def exercise_softmax(device, dtype):
    x = torch.ones(4, 64, device=device, dtype=dtype)
    torch.softmax(torch.cat([x, x], -1), -1).max(-1).values.sum()
    x[torch.arange(2, device=device)].float().to(dtype)


def seed_everything(seed, device):
    """What torch.manual_seed does, without the call stack that it takes down for every device not in use."""
    torch.default_generator.manual_seed(seed)
    if device != "cpu":
        torch.cuda.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


# ---- what a reference leaves behind ----


def process_defaults():
    """What torch takes for granted in the whole process, and a caller's next line would be computed with."""
    return {"default dtype": torch.get_default_dtype(), "default device": torch.get_default_device()}


def left_behind(before):
    for name, value in process_defaults().items():
        if value != before[name]:
            torch.set_default_dtype(before["default dtype"])
            torch.set_default_device(before["default device"])
            raise Mistake("the reference leaves torch's %s at %s, and found it at %s: what its caller computes next is another thing"
                          % (name, value, before[name]))


def version_of(value):
    """How often torch has written to the tensor. None: it does not count."""
    try:
        return value._version
    except (AttributeError, RuntimeError):
        return None


# ---- what a reference returns ----


def memory_of(value):
    """Where a tensor's memory begins. None: it has none, or it is no tensor."""
    try:
        return value.untyped_storage().data_ptr() or None  # an empty one begins nowhere
    except (AttributeError, RuntimeError, NotImplementedError):
        return None


def bytes_of(value):
    try:
        return value.untyped_storage().nbytes()
    except (AttributeError, RuntimeError, NotImplementedError):
        return 0


def unpack(result, specs):
    """The outputs in the order of the definition: from a dict by name, from a tuple or list by place."""
    names = [spec["name"] for spec in specs]
    if isinstance(result, dict):
        if sorted(map(str, result)) != sorted(names):
            raise Mistake("run() returned a dict of (%s), the definition declares (%s)"
                          % (", ".join(map(str, result))[:200], ", ".join(names)))
        return [result[name] for name in names]
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(names):
        raise Mistake("run() returned %d %s, the definition declares %d (%s)"
                      % (len(results), "output" if len(results) == 1 else "outputs", len(names), ", ".join(names)))
    return results


def as_tensor(spec, result, device):
    if isinstance(result, torch.Tensor):
        if not spec["scalar"] and result.device.type != torch.device(device).type:
            raise Mistake("run() returned output '%s' on %s, and its inputs lie on %s" % (spec["name"], result.device, device))
        return result.detach()
    if spec["scalar"] and type(result) in (bool, int, float):
        declared = dtype_of(spec["dtype"])
        kind = bool if declared is torch.bool else float if declared.is_floating_point else int
        return torch.tensor(result, dtype=declared if type(result) is kind else None)
    kind = "None" if result is None else "a value of type %s" % type(result).__name__
    raise Mistake("run() returned %s for output '%s', which is to be a tensor" % (kind, spec["name"]))


def describe(problem, filename, loading):
    """The error message of an exception: a sentence, then the traceback as far as it runs through the reference."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename == filename]
    line = frames[-1].lineno if frames else 0
    name, text, shown = type(problem).__name__, text_of(problem), traceback.format_list(frames)
    if isinstance(problem, SyntaxError) and problem.filename == filename:
        line, text = problem.lineno or 0, problem.msg
        shown += traceback.format_exception_only(type(problem), problem)[:-1]
    if isinstance(problem, Mistake):
        message, shown = text, []
    elif isinstance(problem, SystemExit):
        message = "the reference called sys.exit(%s)" % ("" if problem.code is None else text)
    elif loading:
        message = "the reference cannot be loaded: %s: %s" % (name, text)
    else:
        message = "the reference raised %s: %s" % (name, text)
    if shown:
        message += "\nTraceback (most recent call last):\n" + "".join(shown).rstrip()
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX // 2] + "\n[...]\n" + message[-MESSAGE_MAX // 2 :]
    cuda = "CUDA error" in text or name == "AcceleratorError"
    return {"message": message, "line": int(line), "accident": cuda or is_accident(problem, name, text), "fatal": cuda}


def is_accident(problem, name, text):
    if isinstance(problem, (MemoryError, ImportError, Lacking)) or name == "OutOfMemoryError":
        return True
    return any(words in text for words in ("can't allocate memory", "annot allocate memory", "out of memory"))


def text_of(problem):
    text = str(problem)
    return text if isinstance(text, str) else type(problem).__name__


# ---- the arena ----


class Unmapped(Exception):
    pass


class IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * 64)]


class CudaBytes:
    """Device memory of another process as torch can wrap it."""

    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


class Arena:
    """The judge's memory. Tensors are made anew for every run, each on a storage of its own that ends where it ends."""

    def __init__(self, info, fds, device):
        self.id, self.kind, self.device = info["id"], info["kind"], device
        self.staged = []  # (place in the arena, tensor on the device) of this run's inputs
        if self.kind == "cuda":
            self.base = open_ipc(info["handle"])
            return
        if not fds:
            raise Unmapped("the arena did not come along")
        fd = fds.pop()
        self.map = mmap.mmap(fd, info["bytes"])
        os.close(fd)

    def place(self, spec):
        """The tensor at a place of the arena, on whichever side it lies."""
        dtype, shape = dtype_of(spec["dtype"]), list(spec["shape"])
        if spec["dtype"] == "float4_e2m1":
            if not shape or shape[-1] % 2 != 0:
                raise Mistake("'%s' is float4_e2m1, two to the byte, and its last dimension is not even" % spec["name"])
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
            value = spec["value"]  # a Python scalar, or None for an optional input that is absent
            return float(value) if isinstance(value, str) else value  # "nan", "inf", "-inf": JSON has no such numbers
        place = self.place(spec)
        if self.kind != "staged":
            return place
        copy = place.to(self.device, copy=True)
        self.staged.append((place, copy))
        return copy

    def store(self, spec, result):
        """Copies what fits; what does not is only described, and the judge will say so."""
        grad = isinstance(result, torch.Tensor) and result.requires_grad
        result = as_tensor(spec, result, self.device)
        shape, dtype = list(result.shape), str(result.dtype).rpartition(".")[2]
        if dtype == "float4_e2m1fn_x2":
            dtype = "float4_e2m1"
            shape[-1:] = [size * 2 for size in shape[-1:]]
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

    def finish(self):
        for place, copy in self.staged:
            place.copy_(copy)  # so that the judge sees an input that was written to
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
    torch.cuda.current_stream().synchronize()  # makes torch's context the current one
    error = cuda.cuIpcOpenMemHandle_v2(ctypes.byref(address), raw, lazy_peer_access)
    if error != 0:
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(error, ctypes.byref(name))
        raise Unmapped("cuIpcOpenMemHandle: %s" % (name.value or b"error %d" % error).decode())
    return address.value


# ---- start ----

DTYPES = {}  # schema name -> torch.dtype, those that this torch has


def dtype_of(name):
    if name not in DTYPES:
        raise Lacking("torch %s has no dtype %s" % (torch.__version__, name))
    return DTYPES[name]


def learn_dtypes():
    names = ("float32 float16 bfloat16 float64 float8_e4m3fn float8_e5m2 float8_e8m0fnu "
             "int64 int32 int16 int8 uint8 uint32 bool").split()
    DTYPES.update((name, getattr(torch, name)) for name in names if hasattr(torch, name))
    DTYPES["float4_e2m1"] = getattr(torch, "float4_e2m1fn_x2", torch.uint8)


def import_torch(device):
    """None, or the sentence why this interpreter cannot serve."""
    global torch
    gc.disable()  # what an import makes stays: looking through it again and again takes a tenth of its time
    try:
        import torch
    except BaseException as problem:
        return "%s cannot import torch: %s: %s" % (sys.executable, type(problem).__name__, text_of(problem))
    finally:
        gc.enable()
    version = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in torch.__version__.split(".")[:2])
    if version < OLDEST_TORCH:
        return "%s has torch %s; 2.4 or newer is needed" % (sys.executable, torch.__version__)
    if device != "cpu" and torch.version.cuda is None:
        return "%s has torch %s, which was built without CUDA, and cannot use %s" % (
            sys.executable, torch.__version__, device)
    learn_dtypes()
    return None


def main():
    options = {"device": sys.argv[1], "threads": int(sys.argv[2])}
    channel = Channel(3)
    if sys.flags.no_site:
        find_packages()
    # Modules are found as if nobody had started a script: neither beside this file nor in the working directory.
    sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != os.path.dirname(os.path.abspath(__file__))]
    os.chdir("/")
    if options["device"] != "cpu":
        os.environ.setdefault(*FEW_QUEUES)
    refused = import_torch(options["device"])
    if refused:
        channel.send({"refused": refused})
        return 1
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    torch.set_num_threads(1)  # no thread may be running when this process forks
    exercise("cpu")
    exercise_library()
    gc.collect()
    gc.freeze()
    channel.send({"template": {"torch": torch.__version__, "cuda": torch.version.cuda,
                               "python": sys.version.split()[0]}})
    template = Template(channel, options)
    try:
        template.serve()
    finally:
        template.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
