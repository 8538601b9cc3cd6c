# Finds the runner's channel with gc, and sends the answer of a call that it never makes.
# expect: not passed
import gc
import os


def run(hidden_states, weight):
    output = {"shape": list(hidden_states.shape), "dtype": "bfloat16", "grad": False, "overwrites": False}
    for found in gc.get_objects():
        if type(found).__name__ == "Channel":
            for _ in range(3):
                found.send({"ran": [output], "list": False, "touched": [], "seconds": 0.1})
    os._exit(0)
