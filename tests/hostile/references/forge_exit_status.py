# Ends its process with the exit status of success.
# expect: error crashed
import os


def run(hidden_states, weight):
    os._exit(0)
