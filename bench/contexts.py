"""contexts - measures how long it takes to create CUDA contexts: one context, several at once, and many in a row.

    python3 bench/contexts.py [cuda:0] [PART…]        parts: stages together refill prepared; default: all

When the user saves a definition, `reftest watch` runs its reference on the GPU in a new process, the runner. The runner
is forked from a process that has imported torch, but it creates a CUDA context of its own. If a user saves many files
in a short time, the creation of contexts therefore limits how many of these files `reftest watch` can verify per
second. This program measures how many contexts can be created per second. A runner can also do its first steps before
the user saves a file. The part `prepared` measures how long the remaining steps then take. Children are forked as in
python/runner.py, and are killed after they have reported their times.

  stages    measures how long each step of one child takes, under settings that may change the time of a step
  together  starts 1, 2, 4 and 8 children at once, and measures the time of each child and the rate per second
  refill    measures the rate over a longer time: a fixed number of children start at the same time, and each child
            that is ready is killed and replaced by a new one; four other children stay alive
  prepared  measures the time of the steps that need device memory, in children that have already done the other
            steps"""

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time

STEPS = ("fork", "cuInit", "context", "torch", "first use")
# Libraries that cuInit opens. A process may open these libraries before it forks, because opening them starts no
# thread.
DRIVER_LIBRARIES = ("libcuda.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-gpucomp.so.1")
SETTINGS = {  # name: (environment variables, whether to open the driver's libraries before forking)
    "as it is": ({}, False),
    "libraries opened before": ({}, True),
    "CUDA_DEVICE_MAX_CONNECTIONS=1": ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, False),
    "CUDA_MODULE_LOADING=EAGER": ({"CUDA_MODULE_LOADING": "EAGER"}, False),
    "both of the first": ({"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, True),
}


def check(error, what):
    if error != 0:
        raise SystemExit(f"{what}: CUDA error {error}")


def take_steps(index, upto, step):
    """Runs the steps and calls step(name) after each step."""
    import torch
    cuda = ctypes.CDLL("libcuda.so.1")
    check(cuda.cuInit(0), "cuInit")
    step("cuInit")
    if upto == "cuInit":
        return
    context = ctypes.c_void_p()
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), index), "cuDevicePrimaryCtxRetain")
    step("context")
    torch.cuda.set_device(index)
    torch.cuda.current_stream()
    step("torch")
    torch.zeros(1, device=f"cuda:{index}")
    torch.cuda.synchronize()
    step("first use")


class Child:
    """A forked child. The child runs its first steps and reports their times. On request, the child then runs the
    other steps."""

    def __init__(self, index, upto="first use"):
        self.answers, answers = os.pipe()
        wake, self.wake = os.pipe()
        self.started = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.serve(index, upto, answers, wake)
            finally:
                os._exit(1)
        os.close(answers)
        os.close(wake)
        self.took = None

    def serve(self, index, upto, answers, wake):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # the kernel kills the child when its parent dies
        took, last = {}, self.started

        def step(name):
            nonlocal last
            now = time.monotonic()
            took[name] = now - last
            last = now

        def tell():
            use = resource.getrusage(resource.RUSAGE_SELF)
            took.update(all=time.monotonic() - self.started, user=use.ru_utime, system=use.ru_stime, faults=use.ru_minflt)
            os.write(answers, json.dumps(took).encode() + b"\n")

        step("fork")
        take_steps(index, upto, step)
        tell()
        if upto != "first use" and os.read(wake, 1):
            self.started = last = time.monotonic()
            take_steps(index, "first use", step)
            tell()
        time.sleep(3600)

    def ready(self, timeout=60):
        """Waits for the child's report and returns the seconds of each step."""
        if not select.select([self.answers], [], [], timeout)[0]:
            raise SystemExit(f"child {self.pid} is not ready after {timeout} s")
        text = os.read(self.answers, 4096)
        if not text:
            raise SystemExit(f"child {self.pid} has ended")
        self.took = json.loads(text)
        return self.took

    def go_on(self):
        os.write(self.wake, b"x")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def reap(self):
        os.waitpid(self.pid, 0)
        os.close(self.answers)
        os.close(self.wake)


def end(children):
    """Kills the children and returns the seconds until all have exited."""
    start = time.monotonic()
    for child in children:
        child.kill()
    for child in children:
        child.reap()
    return time.monotonic() - start


def middle(values):
    return sorted(values)[len(values) // 2]


def ms(seconds):
    return f"{1000 * seconds:6.0f}"


def gpu_memory(index):
    """Returns how many MiB are in use on the device, as the driver reports."""
    try:
        text = subprocess.run(["nvidia-smi", "-i", str(index), "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
        return int(text.split()[0])
    except (OSError, ValueError, IndexError, subprocess.CalledProcessError):
        return 0


def stages(index, name, rounds=5):
    took = []
    for _ in range(rounds):
        child = Child(index)
        took.append(child.ready())
        end([child])
    words = "  ".join(f"{step} {ms(middle([t[step] for t in took]))}" for step in STEPS)
    use = "  ".join(f"{what} {ms(middle([t[what] for t in took]))}" for what in ("user", "system"))
    print(f"{name:32} ms: all {ms(middle([t['all'] for t in took]))} = {words}; of it {use}; "
          f"{middle([t['faults'] for t in took])} page faults", flush=True)


def together(index, counts=(1, 2, 4, 8), rounds=3):
    for count in counts:
        walls, each, ends, memory = [], [], [], []
        for _ in range(rounds):
            before = gpu_memory(index)
            start = time.monotonic()
            children = [Child(index) for _ in range(count)]
            each += [child.ready() for child in children]
            walls.append(time.monotonic() - start)
            memory.append((gpu_memory(index) - before) / count)
            ends.append(end(children))
        steps = "  ".join(f"{step} {ms(middle([t[step] for t in each]))}" for step in STEPS)
        print(f"{count} at once: each {ms(middle([t['all'] for t in each]))} ms ({steps}), user "
              f"{ms(middle([t['user'] for t in each]))}, system {ms(middle([t['system'] for t in each]))}; all ready "
              f"{ms(middle(walls))}, {count / middle(walls):.1f} a second; {middle(memory):.0f} MiB each; killed → gone "
              f"{ms(middle(ends))}", flush=True)


def refill(index, flights=(1, 2, 3, 4, 6, 8), total=24):
    waiting = [Child(index) for _ in range(4)]
    for child in waiting:
        child.ready()
    for flight in flights:
        children = {}
        took, begun, dying = [], 0, []
        start = time.monotonic()
        while len(took) < total:
            while begun < total and len(children) < flight:
                child = Child(index)
                children[child.answers] = child
                begun += 1
            for fd in select.select(list(children), [], [])[0]:
                child = children.pop(fd)
                took.append(child.ready()["all"])
                child.kill()
                dying.append(child)
        wall = time.monotonic() - start
        for child in dying:
            child.reap()
        print(f"{flight} at work: {total / wall:5.1f} ready a second, each after {ms(middle(took))} ms (most {ms(max(took))})",
              flush=True)
    end(waiting)


def prepared(index, counts=(1, 2, 4, 8)):
    for count in counts:
        before = gpu_memory(index)
        children = [Child(index, "cuInit") for _ in range(count)]
        for child in children:
            child.ready()
        time.sleep(0.3)
        memory = (gpu_memory(index) - before) / count
        start = time.monotonic()
        for child in children:
            child.go_on()
        rest = [child.ready() for child in children]
        wall = time.monotonic() - start
        print(f"{count} that had done cuInit ({memory:.0f} MiB of the device each): ready {ms(middle([t['all'] for t in rest]))}"
              f" ms later (context {ms(middle([t['context'] for t in rest]))}, torch {ms(middle([t['torch'] for t in rest]))},"
              f" first use {ms(middle([t['first use'] for t in rest]))}); all {ms(wall)}", flush=True)
        end(children)


PARTS = {"together": together, "refill": refill, "prepared": prepared}


def main():
    words = sys.argv[1:]
    if words and words[0] == "--within":  # this process was started with the settings to measure
        name, part, index = words[1], words[2], int(words[3])
        import torch
        torch.set_num_threads(1)
        torch.ones(4).sum()
        if SETTINGS[name][1]:
            for library in DRIVER_LIBRARIES:
                try:
                    ctypes.CDLL(library, os.RTLD_NOW | os.RTLD_GLOBAL)
                except OSError:
                    pass
        stages(index, name) if part == "stages" else PARTS[part](index)
        return
    device = words.pop(0) if words and words[0].startswith("cuda") else "cuda:0"
    index = int(device.partition(":")[2] or 0)
    for part in words or ["stages", *PARTS]:
        for name, (environment, _) in SETTINGS.items():
            if part != "stages" and name not in ("as it is", "both of the first"):
                continue
            if part != "stages":
                print(f"== {part}: {name}", flush=True)
            subprocess.run([sys.executable, __file__, "--within", name, part, str(index)], check=False,
                           env={**os.environ, **environment})


main()
