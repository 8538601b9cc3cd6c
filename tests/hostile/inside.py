"""inside.py - runs the hostile references in one set-up, in the namespaces of setups.py that protect this machine (the
guard), and prints the results as JSON. The script run.py starts this program and checks the results.

The first process of the guard runs `main`, which builds the set-up, drops its privileges, and then runs `attempt`. All
orphaned processes become children of this first process, so it sees the processes that the references leave behind.
"""

import ctypes
import fcntl
import hashlib
import json
import os
import pathlib
import resource
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import gaps
import gpu_memory
import hostile_reference
import setups

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
WORK = pathlib.Path("/tmp/hostile")  # a folder in the guard's own /tmp
HONEST = WORK / "root/definitions/rmsnorm"
MS_BIND, MS_REC = 4096, 16384
TMP_SIZE, SHM_SIZE = "3g", "256m"
MEMORY_MAX = 2 << 30  # bytes of memory that a process may have, whatever reftest allows
GPU_MEMORY_MAX = 16 << 30  # the same limit for a run on a GPU, where the driver reserves more memory
CASE = "small:batch_size=256"  # every reference runs in this case, with 3 calls and 2 sets of input values
MEMORY = "1G"  # the memory limit of a reference
TIMEOUT = 60  # seconds for a case
SHORT_TIMEOUT, SHORT_TIMEOUT_ON_GPU = 1, 2  # the timeout for a case of a reference that never ends
SLEEPERS = ("sleeper", "victim", "stopped")  # processes of the user; the references may end "victim" and stop "stopped"

RIGHT = """import torch

NUMBER = "{name}"


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
"""
WRONG = RIGHT.replace("1e-6", "1e-2")
# The honest definitions. Definitions run in the order of their names, so these run before, between and after the
# hostile ones.
NEIGHBOURS = {f"{place}_{kind}": kind for place in ("a", "f", "m", "s", "z") for kind in ("right", "wrong")}


# ---- before this process drops its privileges ----


def mount(source, target, kind=None, flags=0, options=None):
    """The system call. (The program `mount` would resolve symbolic links in `source` first, and could mount something
    else.)"""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    if ctypes.CDLL(None, use_errno=True).mount(*words[:3], ctypes.c_ulong(flags), words[3]) != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {target}")


def blocked_parent(path):
    """Returns the outermost parent directory of `path` that other users may not enter, or None."""
    for parent in reversed(path.parents):
        if not parent.stat().st_mode & 0o001:
            return parent
    return None


def make_reachable(paths):
    """Lets every user enter the directories in `paths`. A directory may be below one that other users may not enter,
    for example below /root. In this case, mounts an empty tmpfs over /root, and mounts the directory at its old path in
    the tmpfs."""
    hidden = {path: blocked_parent(path) for path in paths}
    opened = {path: os.open(path, os.O_PATH) for path, parent in hidden.items() if parent is not None}
    for parent in {parent for parent in hidden.values() if parent is not None}:
        mount("none", parent, "tmpfs", options="mode=0755,size=1m")
    for path, fd in opened.items():
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{fd}", path, flags=MS_BIND | MS_REC)


def start_loopback():
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def prefixes(python):
    """Returns the directories in which the interpreter `python` is installed."""
    code = "import sys; print(sys.prefix); print(sys.base_prefix)"
    lines = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")
    return [pathlib.Path(line) for line in lines if line]


def main(setup, options):
    os.umask(0o022)
    mine = [sys.prefix, sys.base_prefix]
    make_reachable(dict.fromkeys([PROJECT, *map(pathlib.Path, mine), *prefixes(options["python"])]))
    mount("none", "/tmp", "tmpfs", options=f"mode=1777,size={TMP_SIZE}")
    mount("none", "/dev/shm", "tmpfs", options=f"mode=1777,size={SHM_SIZE}")
    start_loopback()
    restrict = "/tmp/restrict"
    source = PROJECT / "tests/e2e/tools/restrict.c"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-D_GNU_SOURCE", "-o", restrict, str(source)], check=True)
    words = [restrict, *setup.refused, sys.executable, "-B", str(pathlib.Path(__file__).resolve())]
    words = [*setups.drop_rights(setup), *words, "attempt", json.dumps(options)]
    os.execvp(words[0], words)


# ---- after this process has dropped its privileges ----


class Neighbours:
    """The processes, files and services of the user who runs reftest. The references must not be able to access them.
    In the text of each reference, @name@ is replaced by places[name]."""

    def __init__(self, options):
        self.secret = "secret-" + secrets.token_hex(16)  # the secret must not occur in any output of reftest
        for folder in ("home", "others", "temporary", "libraries", "root/workloads"):
            (WORK / folder).mkdir(parents=True)
        HONEST.mkdir(parents=True)
        for name in ("home/secret", "others/file"):
            (WORK / name).write_text(self.secret)
        self.sleepers = {name: self.start_sleeper() for name in SLEEPERS}
        self.sockets = [
            self.listen(socket.AF_INET, ("127.0.0.1", 0)),
            self.listen(socket.AF_UNIX, str(WORK / "others/socket")),
        ]
        self.sockets += [self.listen(socket.AF_UNIX, "\0hostile")]
        self.sockets += [socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        self.sockets[-1].bind(("127.0.0.1", 0))
        self.memory = pathlib.Path("/dev/shm/hostile")
        self.memory.write_text(self.secret)
        self.segment = self.create_segment()
        self.places = {
            "work": WORK, "home": WORK / "home", "others": WORK / "others", "root": WORK / "root",
            "libraries": WORK / "libraries", "tcp": self.sockets[0].getsockname()[1],
            "udp": self.sockets[-1].getsockname()[1], **{name: one.pid for name, one in self.sleepers.items()},
            "sharer": 0,
        }  # fmt: skip
        self.sharer = None if options["device"] == "cpu" else self.share_gpu_memory(options)

    def share_gpu_memory(self, options):
        """Starts a process that shares memory of the GPU. Then checks that a process with the right handle can open
        this memory. Without this check, the failed attempt of a reference would prove nothing."""
        program, device = [options["python"], "-IS", str(HERE / "gpu_memory.py")], options["device"]
        one = subprocess.Popen([*program, "share", device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        handle = one.stdout.readline().strip()
        opened = subprocess.run([*program, "open", device, handle], capture_output=True, text=True)
        if opened.stdout.strip() != str(gpu_memory.BYTE):
            raise RuntimeError(f"shared memory of the GPU does not open with its handle: {opened.stdout}{opened.stderr}")
        self.places["sharer"] = one.pid
        return one

    def start_sleeper(self):
        """Starts a process whose environment has the secret."""
        environment = {**os.environ, "SECRET": self.secret}
        code = "import os, time; secret = os.environ['SECRET']; print(flush=True); time.sleep(600)"
        one = subprocess.Popen([sys.executable, "-IS", "-c", code], env=environment, stdout=subprocess.PIPE)
        one.stdout.readline()
        return one

    @staticmethod
    def listen(family, address):
        one = socket.socket(family)
        one.bind(address)
        one.listen()
        return one

    @staticmethod
    def create_segment():
        """Creates System V shared memory with the key 1234."""
        SHMGET, CREATE = 29, 0o1600
        return ctypes.CDLL(None).syscall(SHMGET, 1234, 4096, CREATE)

    def pids(self):
        return {one.pid for one in [*self.sleepers.values(), self.sharer] if one is not None}

    def states(self):
        """Returns the state of each sleeper: "S" (it sleeps), "T" (it is stopped) or "Z" (it has ended)."""
        return {name: process_state(one.pid) for name, one in self.sleepers.items()}

    def write_dataset(self, references):
        for reference in references:
            source = reference.source
            for name, value in self.places.items():
                source = source.replace(f"@{name}@", str(value))
            write_definition(reference.name, source)
        for name, kind in NEIGHBOURS.items():
            write_definition(name, (RIGHT if kind == "right" else WRONG).format(name=name))

    def end(self):
        for one in [*self.sleepers.values(), self.sharer]:
            if one is not None:
                one.kill()
                one.wait()


def write_definition(name, source):
    rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
    definition = {
        "name": name, "op_type": "rmsnorm", "description": "A small RMS norm. Epsilon is 1e-6.",
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
        "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
        "outputs": {"output": rows}, "reference": source,
    }  # fmt: skip
    (HONEST / f"{name}.json").write_text(json.dumps(definition))


def process_state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def other_processes(known):
    """Returns {pid: command line} of the processes in the guard whose pids are not in `known`."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in known and process_state(name) not in (None, "Z"):
            try:
                found[int(name)] = pathlib.Path(f"/proc/{name}/cmdline").read_text(errors="replace").replace("\0", " ")
            except OSError:
                pass
    return found


def wait_for_end(known):
    """Waits up to 10 s for the end of all processes except those in `known`. Kills the processes that are left, and
    returns them."""
    for _ in range(100):
        left = other_processes(known)
        if not left:
            break
        time.sleep(0.1)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return left


def files_below(*folders):
    """Returns the mode, the owner, the time and the content of all files, directories and links below the directories
    `folders`."""
    found = {}
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            st = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            digest = hashlib.sha256(content).hexdigest()
            found[str(path)] = [oct(st.st_mode), st.st_uid, st.st_mtime_ns if content else 0, digest]
    return found


def run_reftest(options, *words, seconds=300):
    """Runs reftest as a user would, in a new session, with a key, an inherited file descriptor and a time limit."""
    inherited = os.open(WORK / "others/file", os.O_RDWR)
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(WORK / "home"), "TMPDIR": str(WORK / "temporary"), "LC_ALL": "C.UTF-8",
        "REFTEST_PYTHON": options["python"], "REFTEST_CACHE_KEY": options["key"],
        "REFTEST_KERNELS": str(WORK / "libraries"), "OMP_WAIT_POLICY": "passive",
    }  # fmt: skip
    start = time.monotonic()
    with open(WORK / "output", "wb") as out, open(WORK / "errors", "wb") as errors:
        one = subprocess.Popen(
            [options["reftest"], "--root", str(WORK / "root"), *words], env=environment, stdin=subprocess.DEVNULL,
            stdout=out, stderr=errors, pass_fds=[inherited], start_new_session=True, cwd=WORK,
        )  # fmt: skip
        try:
            status = one.wait(seconds)
        except subprocess.TimeoutExpired:
            one.kill()
            status = one.wait() and "it took too long"
    os.close(inherited)
    texts = [(WORK / name).read_text(errors="replace") for name in ("output", "errors")]
    return {"status": status, "seconds": time.monotonic() - start, "output": texts[0], "errors": texts[1]}


def verify(options, names, timeout):
    words = ["verify", "--alone", "--force", "--format", "json", "--device", options["device"], "--case", CASE]
    words += ["--memory", MEMORY, "--jobs", "2", "--timeout", str(timeout), *names]
    return run_reftest(options, *words)


def attempt(options):
    """Runs all references of this set-up in two batches, and prints the facts that run.py judges."""
    most = MEMORY_MAX if options["device"] == "cpu" else GPU_MEMORY_MAX
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    options["key"] = subprocess.run(
        [options["reftest"], "key"], check=True, capture_output=True, text=True
    ).stdout.strip()
    neighbours = Neighbours(options)
    for path in pathlib.Path(options["build"]).glob("libreftest_*.so"):
        shutil.copy(path, WORK / "libraries")
    doctor = run_reftest(options, "doctor", "--format", "json")
    opened = gaps.reported_by_doctor(doctor["output"])
    references = [one for one in hostile_reference.read_all() if one.name in options["names"]]
    references = [one for one in references if not (one.destroys and one.gap in opened)]
    neighbours.write_dataset(references)
    known = {os.getpid(), *neighbours.pids()}
    watched = [WORK / name for name in ("home", "others", "libraries")] + [HONEST, pathlib.Path("/dev/shm")]
    facts = {"gaps": sorted(opened), "ran": [one.name for one in references], "files_before": files_below(*watched)}
    batches = {"endless": [one.name for one in references if one.is_endless]}
    batches["others"] = [one.name for one in references if not one.is_endless]
    for batch, names in batches.items():
        short = SHORT_TIMEOUT if options["device"] == "cpu" else SHORT_TIMEOUT_ON_GPU
        timeout = short if batch == "endless" else TIMEOUT
        facts[batch] = verify(options, [*names, *NEIGHBOURS], timeout)
        facts[batch]["left"] = wait_for_end(known)
    facts["files_after"] = files_below(*watched)
    facts["temporary"] = sorted(f"{one}: {os.listdir(one)}" for one in (WORK / "temporary").iterdir())
    facts["sleepers"] = neighbours.states()
    facts["secret"], facts["key"] = neighbours.secret, options["key"]
    neighbours.end()
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1] == "attempt":
        attempt(json.loads(sys.argv[2]))
    else:
        given = {one.name: one for one in setups.SETUPS}
        main(given[sys.argv[1]], json.loads(sys.argv[2]))
