# Loops forever before it defines run.
# expect: error timeout
while True:
    pass


def run(hidden_states, weight):
    return hidden_states
