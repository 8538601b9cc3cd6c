# Starts processes that together have more memory than the reference may use, although each of them has little.
# expect: error memory_limit | error raised
# gap: memory
# contained: error memory_limit
import os
import time

COUNT, EACH = 8, 200 << 20  # the limit of these references is 1 GiB


def hold():
    memory = bytearray(EACH)
    for place in range(0, EACH, 4096):
        memory[place] = 1
    time.sleep(600)


def run(hidden_states, weight):
    children = []
    for _ in range(COUNT):
        pid = os.fork()
        if pid == 0:
            hold()
        children.append(pid)
    time.sleep(4)
    alive = sum(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in children)
    raise AssertionError(f"reached: {alive} processes with {EACH >> 20} MiB" if alive == COUNT else "contained")
