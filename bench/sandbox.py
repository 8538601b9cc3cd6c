#!/usr/bin/env python3
"""sandbox - measures the cost of the sandbox of references. A process that has imported torch forks children that exit
at once, alternately inside and outside of the sandbox. Usage: bench/sandbox.py [BUILD [PAIRS]]; the interpreter must
have torch.

Prints the time that sandbox_open takes, and the medians over all pairs: processor time without the sandbox, processor
time in the sandbox, and their difference. The program measures the processor time of parent and child, because elapsed
time changes with the load.

The program then measures a warm case: a case in a process that has run this case before. For this measurement, the
program forks a tenth as many pairs of children. Each child computes a small rmsnorm once, and then CASES more times.
The program prints two processor times: that of a whole child, and that of a warm case. For each time, it prints the
medians outside and inside of the sandbox, and the quartiles of the differences."""

import importlib.util
import os
import resource
import statistics
import struct
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load_runner():
    spec = importlib.util.spec_from_file_location("runner", os.path.join(TOP, "python", "runner.py"))
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


def processor_ms():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) * 1e3


def child(before, inside, after, end):
    """Forks a child that exits at once. Returns the processor time in milliseconds, from the fork until the child is
    reaped."""
    start = processor_ms()
    given = before()
    pid = os.fork()
    if pid == 0:
        inside(given)
        os._exit(0)
    after()
    os.waitpid(pid, 0)
    end(given)
    return processor_ms() - start


CASES = 20  # how many warm cases a child runs


def norm_ms():
    """Computes a small rmsnorm CASES times. Returns the median processor time of one computation in milliseconds."""
    import torch

    x, weight, took = torch.ones(256, 1024), torch.ones(1024), []
    for _ in range(CASES + 1):
        start = time.thread_time()
        x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * weight
        took.append(1e3 * (time.thread_time() - start))
    return statistics.median(took[1:])


def working(inside):
    """Returns a function, and the read end and the write end of a pipe. The function is an argument of child(): it
    calls `inside`, computes, and writes its result to the pipe."""
    here, there = os.pipe()

    def work(given):
        inside(given)
        os.write(there, struct.pack("d", norm_ms()))

    return work, here, there


def worked(before, inside, after, end):
    """Returns two processor times in milliseconds: that of a child that computes, and that of a warm case in this
    child."""
    work, here, there = working(inside)
    took = child(before, work, after, end)
    case = struct.unpack("d", os.read(here, 8))[0]
    os.close(here)
    os.close(there)
    return took, case


def show(what, plain, boxed):
    extra = [b - a for a, b in zip(plain, boxed)]
    low, middle, high = statistics.quantiles(extra, n=4)
    print("%s %.3f ms, in the sandbox %.3f ms, difference %.3f ms (quartiles %.3f and %.3f)" % (
        what, statistics.median(plain), statistics.median(boxed), middle, low, high))


def main():
    build, pairs = (sys.argv[1:] + ["build"])[0], int((sys.argv[2:] + ["200"])[0])
    runner = load_runner()
    start = time.perf_counter()
    sandbox = runner.Sandbox(os.open(os.path.join(TOP, build, "libreftest_sandbox.so"), os.O_RDONLY), "cpu", TOP, "/tmp")
    opened = (time.perf_counter() - start) * 1e3
    runner.import_torch("cpu")
    runner.torch.set_num_threads(1)  # waiting threads use processor time, which would hide the differences

    def end(given):
        sandbox.end(*given)
        sandbox.reap(given[0])

    plain, boxed = [], []
    for _ in range(pairs):
        plain.append(child(lambda: None, lambda given: None, lambda: None, lambda given: None))
        boxed.append(child(sandbox.before_fork, lambda given: sandbox.enter(given[1]), sandbox.after_fork, end))
    print("layers %#x; opened in %.1f ms" % (sandbox.layers, opened))
    show("a child that ends", plain, boxed)
    pairs = [(worked(lambda: None, lambda given: None, lambda: None, lambda given: None),
              worked(sandbox.before_fork, lambda given: sandbox.enter(given[1]), sandbox.after_fork, end))
             for _ in range(max(4, pairs // 10))]  # fmt: skip
    show("a child that computes", [a[0] for a, _ in pairs], [b[0] for _, b in pairs])
    show("a warm case in it", [a[1] for a, _ in pairs], [b[1] for _, b in pairs])


if __name__ == "__main__":
    main()
