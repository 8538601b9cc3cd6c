# Sets its inputs to zero, so that zeros are the right answer, and writes the old values back.
# expect: failed numeric


def run(hidden_states, weight):
    kept = hidden_states.clone()
    hidden_states.data.zero_()
    result = hidden_states * weight
    hidden_states.data.copy_(kept)
    return result
