# Closes every descriptor of its process.
# expect: error crashed
import os


def run(hidden_states, weight):
    os.closerange(0, 4096)
    return hidden_states
