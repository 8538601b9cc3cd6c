#!/usr/bin/env python3
"""control_groups - measures the cost of giving each child its own control group. Children are forked in pairs, one with
its own group and one without. Usage: bench/control_groups.py GROUP [PAIRS], where GROUP is the folder of a cgroup v2
group whose child groups have the controllers memory and pids.

Prints the medians of the elapsed milliseconds. Processor time would not include the time in which the kernel waits
while it moves a process to another group."""

import os
import statistics
import sys
import time


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def child(group):
    """Forks a child that moves to the control group `group` and ends. If `group` is None, the child stays in its group.
    Returns the elapsed milliseconds."""
    start = time.perf_counter()
    if group is not None:
        os.mkdir(group)
        for name, text in (("memory.max", "4G"), ("memory.oom.group", "1"), ("pids.max", "1000")):
            if os.path.exists(os.path.join(group, name)):  # the file is missing if the controllers belong to cgroup v1
                write(os.path.join(group, name), text)
    pid = os.fork()
    if pid == 0:
        if group is not None:
            write(os.path.join(group, "cgroup.procs"), "0")
        os._exit(0)
    os.waitpid(pid, 0)
    if group is not None:
        os.rmdir(group)
    return (time.perf_counter() - start) * 1e3


def main():
    group, pairs = sys.argv[1], int((sys.argv[2:] + ["200"])[0])
    plain, grouped = [], []
    for i in range(pairs):
        plain.append(child(None))
        grouped.append(child(os.path.join(group, "bench-%d" % i)))
    quantiles = statistics.quantiles(grouped, n=100)
    print("a child {:.2f} ms, in a group {:.2f} ms, p99 {:.2f} ms".format(
        statistics.median(plain), statistics.median(grouped), quantiles[98]))


if __name__ == "__main__":
    main()
