# Leaves a pipe and files behind, some with control characters or invalid UTF-8 in their names.
# expect: failed numeric
import os

import torch


def run(hidden_states, weight):
    folder = os.fsencode(os.environ["TMPDIR"])
    for name in (b"new\nline", b"\xff\xfe", b"-rf", b"\x1b[2J", b"a" * 255):
        open(folder + b"/" + name, "w").close()
    if not os.path.exists(folder + b"/pipe"):
        os.mkfifo(folder + b"/pipe")
    return torch.zeros_like(hidden_states)
