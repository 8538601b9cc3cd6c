"""setups.py - the set-ups in which the hostile references run, and the guard around each of them.

The guard protects this machine even if reftest does not contain the references. The guard is a PID, mount, IPC and
network namespace, whose /tmp and /dev/shm are in memory and of limited size. inside.py builds the rest of a set-up in
the guard.
"""

import ctypes
import dataclasses
import os
import pathlib
import platform
import re
import shutil
import subprocess

# The capabilities that Docker leaves to root by default.
CONTAINER = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot mknod audit_write setfcap"
NO_NAMESPACES = frozenset({"attributes", "processes", "disk", "memory"})
NEITHER = NO_NAMESPACES | {"files", "signals", "process_memory", "process_list"}
LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION, LANDLOCK_ABI = 444, 1, 6
GPU = frozenset({"memory", "local_services"})  # the gaps that are also open on a GPU
PLAIN_USER = 61234  # the id of a user without other processes, for a test that runs as root


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    about: str
    refused: tuple = ()  # the options with which tests/e2e/tools/restrict.c runs
    as_root: bool = False
    gaps: frozenset = frozenset()  # the gaps that are open here (new kernel, CPU); see docs/containment.md, "Set-ups"


SETUPS = [
    Setup("everything", "a plain user, and the kernel grants every layer"),
    Setup("no_landlock", "a plain user, no Landlock", ("--no-landlock",)),
    Setup("no_namespaces", "a plain user, no namespaces", ("--no-namespaces",), gaps=NO_NAMESPACES),
    Setup(
        "neither", "a plain user, neither Landlock nor namespaces", ("--no-landlock", "--no-namespaces"), gaps=NEITHER
    ),
    Setup("container", "root in a container with a default seccomp filter", ("--container",), True, NO_NAMESPACES),
]


def guard(setup):
    """Returns the words with which a command line begins. The caller appends a command, which then runs in the guard
    and has the rights to build the set-up."""
    words = ["unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        words += ["--user", *(["--map-root-user"] if setup.as_root else ["--map-current-user", "--keep-caps"])]
    return words


def refusal(setup):
    """Returns the reason why this machine cannot build a guard, or None."""
    if pathlib.Path("/tmp") in pathlib.Path(__file__).resolve().parents:
        return "this checkout is below /tmp, and the guard has a /tmp of its own"
    for program in ("unshare", "setpriv", "cc"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    answer = subprocess.run([*guard(setup), "true"], check=False, capture_output=True, text=True)
    if answer.returncode != 0:
        return f"namespaces for the guard of this test are refused: {answer.stderr.strip()[:200]}"
    return None


def old_kernel():
    """If this kernel is too old for some layer of the sandbox, returns a message that says so, else None."""
    version = tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])
    if version < (6, 14):
        return f"Linux {platform.release()} is older than 6.14"
    abi = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION)
    return None if abi >= LANDLOCK_ABI else f"Landlock has version {abi} here, not {LANDLOCK_ABI}"


def drop_rights(setup):
    """Returns the words with which a command line begins. The caller appends a command, which then runs as the set-up's
    user."""
    if setup.as_root:
        kept = ",".join(f"+{name}" for name in CONTAINER.split())
        return ["setpriv", f"--bounding-set=-all,{kept}", f"--inh-caps=-all,{kept}"]
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    if os.geteuid() == 0:
        words[1:1] = [f"--reuid={PLAIN_USER}", f"--regid={PLAIN_USER}", "--clear-groups"]
    return words
