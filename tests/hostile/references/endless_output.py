# Returns a list whose iterator never ends.
# expect: error timeout | error


class Endless(list):
    def __iter__(self):
        while True:
            yield None


def run(hidden_states, weight):
    return Endless()
