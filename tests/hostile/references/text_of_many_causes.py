# Raises an exception with a chain of a hundred thousand causes.
# expect: error raised


def run(hidden_states, weight):
    problem = None
    for number in range(100_000):
        new = ValueError(number)
        new.__cause__ = problem
        problem = new
    raise problem
