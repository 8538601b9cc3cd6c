# Raises an exception with Unicode direction marks in its text, so that a terminal shows the text in another order.
# expect: error raised


def run(hidden_states, weight):
    raise ValueError("\u202edessap\u202c \u2066\u200f\u061c \u200b\u2028\u2029\ufeff")
