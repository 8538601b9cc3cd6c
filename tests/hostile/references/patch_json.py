# Replaces the runner's messages by messages about a reference that passed.
# expect: not passed
import json

import torch

dumps = json.dumps


def forged(message, **keywords):
    if "ran" in message or "error" in message:
        message = {"ran": [{"shape": [1, 64], "dtype": "bfloat16"}], "status": "passed", "ok": True}
    return dumps(message, **keywords)


json.dumps = forged


def run(hidden_states, weight):
    return torch.zeros_like(hidden_states)
