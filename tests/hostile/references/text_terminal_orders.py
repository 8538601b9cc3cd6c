# Prints control sequences that clear a terminal, rename it and type into it, and raises an exception with this text.
# expect: error raised
ORDERS = "\x1b[2J\x1b]0;passed\x07\x1b[6n\x1bP$q\x1b\\\x9b31m\x08\x7f\r"


def run(hidden_states, weight):
    print(ORDERS)
    raise ValueError(ORDERS)
