# Raises an exception whose text, name and traceback raise exceptions themselves.
# expect: error raised


class Kind(type):
    def __getattribute__(cls, name):
        raise SystemExit("no " + name)


class Raises(Exception, metaclass=Kind):
    def __str__(self):
        raise Raises

    __repr__ = __str__


def run(hidden_states, weight):
    raise Raises
