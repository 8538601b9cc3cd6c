#!/usr/bin/env python3
"""memory - measures how much memory references take in addition to the tensors of their cases. Usage: bench/memory.py
ROOT [VERIFY OPTIONS…]. Runs `reftest verify --force` on the dataset ROOT with a changed runner, which measures the
memory of its own processes.

Prints two lists of cases. The first list has the cases with small tensors that need the most additional memory; this is
what Python, torch and its libraries need. The second list has the cases with large tensors that need the most memory in
proportion to their tensors. Each line has three figures. The first figure is the address space that the reference added
while it was loaded and while it ran. The memory that counts towards reftest's memory limit is never more than this. The
second figure is the size of the case's tensors. The third figure is the ratio of the first two. The function
memory_limit in workers/pool/memory_limit.c is based on these figures."""

import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The memory limit is a constant plus a multiple of the size of the tensors. The constant follows from the cases with at
# most SMALL bytes of tensors, and the factor follows from the other cases.
SMALL = 16 << 20
MEASURED = '''
import os as _os
_log = _os.open(%r, _os.O_WRONLY | _os.O_APPEND | _os.O_CREAT, 0o600)


def _kib(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))


class Child(Child):
    def load(self, message):
        self.before, self.mapped, self.most, self.name = _kib("VmSize"), 0, 0, message["name"]
        return super().load(message)

    def case(self, case):
        if self.arena is None or self.arena.id != case["arena"]["id"]:
            self.mapped += case["arena"].get("bytes", 0)
        tensors = sum(tensor_bytes(spec) for kind in ("inputs", "outputs") for spec in case[kind] if "offset" in spec)
        self.most = max(self.most, tensors)  # the kernel reports one peak for all cases so far
        try:
            return super().case(case)
        finally:
            grown = (_kib("VmPeak") - self.before) * 1024 - self.mapped
            _os.write(_log, ("%%d %%d %%s\\n" %% (grown, self.most, self.name)).encode())


def tensor_bytes(spec):
    count = 1
    for size in spec["shape"]:
        count *= size
    return count * dtype_of(spec["dtype"]).itemsize


'''


def main():
    root, options = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        with open(os.path.join(TOP, "python", "runner.py")) as file:
            head, last, tail = file.read().rpartition('if __name__ == "__main__":')
        for name in os.listdir(os.path.join(TOP, "python")):
            if name.endswith(".py") and name != "runner.py":
                os.symlink(os.path.join(TOP, "python", name), os.path.join(folder, name))
        runner = os.path.join(folder, "runner.py")
        with open(runner, "w") as file:
            file.write(head + MEASURED % log + last + tail)
        subprocess.run([os.path.join(TOP, "build", "reftest"), "verify", "--root", root, "--force", "--quiet", *options],
                       check=False, stdout=subprocess.DEVNULL, env=dict(os.environ, REFTEST_RUNNER=runner))
        with open(log) as file:
            cases = {(int(grown), int(tensors), name) for grown, tensors, name in map(str.split, file)}
    print("%d different needs" % len(cases))
    small = [case for case in cases if case[1] <= SMALL]
    large = [case for case in cases if case[1] > SMALL]
    for title, some, key in (("most beside small tensors", small, lambda case: case[0]),
                             ("largest ratio of large tensors", large, lambda case: case[0] / case[1])):
        for grown, tensors, name in sorted(some, key=key, reverse=True)[:5]:
            print("%s: %.0f MiB for %.1f MiB of tensors (%.2f times), %s" % (
                title, grown / 2**20, tensors / 2**20, grown / max(tensors, 1), name))


if __name__ == "__main__":
    main()
