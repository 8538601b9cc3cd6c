# Starts processes that each use little memory, but together more than the reference may use.
# expect: error memory_limit | error raised
# gap: memory
# contained: error memory_limit
import os
import time

COUNT, EACH = 8, 200 << 20  # together, this is more memory than a reference may use (1 GiB)


def hold(full):
    memory = bytearray(EACH)
    for place in range(0, EACH, 4096):
        memory[place] = 1
    os.write(full, b"x")
    time.sleep(600)


def run(hidden_states, weight):
    children = []
    ours, theirs = os.pipe()
    for _ in range(COUNT):
        pid = os.fork()
        if pid == 0:
            hold(theirs)
        children.append(pid)
    for _ in range(COUNT):
        os.read(ours, 1)
    time.sleep(1)
    alive = sum(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in children)
    raise AssertionError(f"reached: {alive} processes with {EACH >> 20} MiB" if alive == COUNT else "contained")
