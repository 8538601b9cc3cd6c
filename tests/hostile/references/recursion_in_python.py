# Calls itself without end.
# expect: error raised


def run(hidden_states, weight):
    return run(hidden_states, weight)
