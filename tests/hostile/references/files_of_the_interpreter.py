# Opens the files of torch and of the interpreter for writing, and creates one beside them.
# expect: error raised
# gap: none
import os
import sys

import torch


def run(hidden_states, weight):
    reached = []
    for path in (
        torch.__file__,
        os.__file__,
        sys.executable,
        os.path.join(os.path.dirname(torch.__file__), "planted.py"),
    ):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
            reached.append(path)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
