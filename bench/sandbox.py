#!/usr/bin/env python3
"""sandbox - the cost of the sandbox of references, measured in pairs: a child that is forked from a warm torch and ends,
in the sandbox and without it, in turn. Usage: bench/sandbox.py [BUILD [PAIRS]]; the interpreter must have torch.

Prints the time that sandbox_open takes, and the medians over all pairs: processor time without the sandbox, the same in
it, and their difference. Processor time of both processes is measured, because elapsed time changes with the load."""

import importlib.util
import os
import resource
import statistics
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
    """Forks a child that only ends, and returns the milliseconds of processor time until it was reaped."""
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


def main():
    build, pairs = (sys.argv[1:] + ["build"])[0], int((sys.argv[2:] + ["200"])[0])
    runner = load_runner()
    start = time.perf_counter()
    sandbox = runner.Sandbox(os.open(os.path.join(TOP, build, "libreftest_sandbox.so"), os.O_RDONLY), "cpu", TOP, "/tmp")
    opened = (time.perf_counter() - start) * 1e3
    runner.import_torch("cpu")

    def end(given):
        sandbox.end(*given)
        sandbox.reap(given[0])

    plain, boxed = [], []
    for _ in range(pairs):
        plain.append(child(lambda: None, lambda given: None, lambda: None, lambda given: None))
        boxed.append(child(sandbox.before_fork, lambda given: sandbox.enter(given[1]), sandbox.after_fork, end))
    extra = [b - a for a, b in zip(plain, boxed)]
    print("layers %#x; opened in %.1f ms; a child %.2f ms, in the sandbox %.2f ms, difference %.2f ms" % (
        sandbox.layers, opened, statistics.median(plain), statistics.median(boxed), statistics.median(extra)))


if __name__ == "__main__":
    main()
