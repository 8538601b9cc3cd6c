# Raises and prints orders to the systems that run tests.
# expect: error raised
ORDERS = "\n::set-output name=passed::1\n::error file=x::y\n##[command]x\n##vso[task.complete result=Succeeded]\n"


def run(hidden_states, weight):
    print(ORDERS)
    raise ValueError(ORDERS)
