# Uses each privilege of root: changes its user, its resource limits, its root directory, and the machine's name and
# clock.
# expect: error raised
# gap: capabilities
import os
import resource
import socket
import time


def take_priority():
    before = os.nice(0)
    if os.nice(-20) == before:
        raise OSError("the priority was the highest already")


def run(hidden_states, weight):
    attempts = {
        "setuid": lambda: os.setuid(12345),
        "setgroups": lambda: os.setgroups([0]),
        "chroot": lambda: os.chroot("/usr"),
        "chown": lambda: os.chown(os.environ["TMPDIR"], 12345, 12345),
        "name": lambda: socket.sethostname("hostile"),
        "clock": lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
        "nice": take_priority,
        "limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)),
        "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    }
    reached = []
    for name, attempt in attempts.items():
        try:
            attempt()
            reached.append(name)
        except (OSError, ValueError):
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
