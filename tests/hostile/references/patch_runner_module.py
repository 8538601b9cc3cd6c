# Replaces the runner's classes so that outputs are described but never stored.
# expect: not passed
import sys

runner = sys.modules["__main__"]


def described(self, spec, result):
    return {"shape": spec["shape"], "dtype": spec["dtype"], "grad": False}


runner.Arena.store = described
runner.Arena.finish = lambda self: None
runner.left_behind = lambda before: None


def run(hidden_states, weight):
    return None
