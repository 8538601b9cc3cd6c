# Reads the memory, the environment and the file descriptors of every process of reftest.
# expect: error raised
# gap: none
import os

FILES = ("mem", "environ", "maps", "auxv", "fd", "map_files", "stack", "syscall")


def has_content(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        with open(path, "rb") as file:
            return path.endswith("/mem") or bool(file.read(1))
    except OSError:
        return False


def threads_of(pid):
    """Returns the ids of a process's threads. /proc also has a directory for each thread, which a listing of /proc
    omits."""
    try:
        return {int(number) for number in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return set()


def is_of_a_reference(pid):
    """Returns whether another reference has started this program ("python -IS -c CODE"), or it has ended. reftest
    starts no program with these arguments."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[1:3] == [b"-IS", b"-c"]
    except OSError:
        return True


def run(hidden_states, weight):
    of_user = (int("@sleeper@"), int("@victim@"), int("@stopped@"), int("@sharer@"))
    known = {1, *threads_of("self")}.union(*map(threads_of, of_user))
    reached = []
    for pid in set(range(1, 5000)) - known:
        if is_of_a_reference(pid):
            continue
        for name in FILES:
            for path in (f"/proc/{pid}/{name}", f"/proc/{pid}/task/{pid}/{name}"):
                if has_content(path):
                    reached.append(path)
    raise AssertionError(f"reached: {reached[:20]}" if reached else "contained")
