# Replaces its process by a program that exits with status 0.
# expect: error crashed
import os


def run(hidden_states, weight):
    os.execv("/bin/true", ["true"])
