# Raises an exception whose text consists of surrogates, which are not characters.
# expect: error raised


def run(hidden_states, weight):
    raise ValueError("\ud800 \udfff \udc80")
