# Calls itself without end, with Python's limit removed, until the stack is full or, since Python 3.12, until a limit that
# cannot be removed.
# expect: error crashed | error raised
import sys

sys.setrecursionlimit(1 << 30)


class Deep:
    def __repr__(self):
        return repr([self])


def run(hidden_states, weight):
    return repr(Deep())
