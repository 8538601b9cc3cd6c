# Raises an exception whose text is an object of a subclass of str with hostile methods.
# expect: error raised


class Text(str):
    def __len__(self):
        return -1

    def __contains__(self, other):
        raise SystemExit(0)

    def __str__(self):
        return self


class Raises(Exception):
    def __str__(self):
        return Text("\0\ud800")


def run(hidden_states, weight):
    raise Raises
