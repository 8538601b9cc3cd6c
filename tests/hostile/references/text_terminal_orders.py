# Prints a text that clears a terminal, renames it and types into it, and raises an exception with this text.
# expect: error raised
ORDERS = "\x1b[2J\x1b]0;passed\x07\x1b[6n\x1bP$q\x1b\\\x9b31m\x08\x7f\r"


def run(hidden_states, weight):
    print(ORDERS)
    raise ValueError(ORDERS)
