# Starts orphaned processes in sessions of their own, which together use more memory than the reference may use.
# expect: error memory_limit | error raised
# gap: memory
# contained: error memory_limit
import os
import subprocess
import sys
import time

COUNT, EACH = 8, 200 << 20  # together, this is more memory than a reference may use (1 GiB)
CODE = f"""
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
memory = bytearray({EACH})
for place in range(0, {EACH}, 4096):
    memory[place] = 1
os.write(1, b"x")
time.sleep(600)
"""


def run(hidden_states, weight):
    ours, theirs = os.pipe()
    for _ in range(COUNT):
        subprocess.run([sys.executable, "-IS", "-c", CODE], stdout=theirs)
    os.close(theirs)
    alive = sum(len(os.read(ours, 1)) for _ in range(COUNT))
    time.sleep(1)
    raise AssertionError(f"reached: {alive} processes with {EACH >> 20} MiB" if alive == COUNT else "contained")
