# Computes an answer once for each address of its input, and returns the same answer for other values at that address.
# expect: not passed
import torch

answers = {}


def run(hidden_states, weight):
    place = hidden_states.data_ptr()
    if place not in answers:
        answers[place] = torch.ones_like(hidden_states)
    return answers[place]
