# Removes Python's recursion limit, and calls itself without end. Since Python 3.12, another limit, which cannot be
# removed, ends the recursion. In older versions, the recursion ends when the stack is full.
# expect: error crashed | error raised
import sys

sys.setrecursionlimit(1 << 30)


class Deep:
    def __repr__(self):
        return repr([self])


def run(hidden_states, weight):
    return repr(Deep())
