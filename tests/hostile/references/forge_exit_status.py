# Ends its process with exit status 0, which means success.
# expect: error crashed
import os


def run(hidden_states, weight):
    os._exit(0)
