# Overwrites the judge's libraries in place, and returns zeros.
# expect: failed numeric
import glob
import os

import torch


def run(hidden_states, weight):
    for path in glob.glob("@libraries@/*.so"):
        try:
            with open(path, "r+b") as file:
                file.seek(4096)
                file.write(b"\xcc" * (os.stat(path).st_size - 4096))
        except OSError as problem:
            print(problem)
    return torch.zeros_like(hidden_states)
