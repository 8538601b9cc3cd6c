# Returns a dict whose keys pretend to be the names of outputs.
# expect: not passed
import torch


class Name(str):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def run(hidden_states, weight):
    return {Name("other"): torch.zeros_like(hidden_states)}
