# Replaces the code objects of the runner's functions, so that saved references to these functions also run the
# replacement.
# expect: not passed
import sys

runner = sys.modules["__main__"]
runner.as_tensor.__code__ = (lambda spec, result, device: result).__code__
runner.unpack.__code__ = (lambda result, specs: [result] * len(specs)).__code__
runner.version_of.__code__ = (lambda value: 0).__code__


def run(hidden_states, weight):
    hidden_states.zero_()
    return hidden_states
