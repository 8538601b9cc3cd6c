# Prints commands that CI systems would execute, and raises an exception with them.
# expect: error raised
ORDERS = "\n::set-output name=passed::1\n::error file=x::y\n##[command]x\n##vso[task.complete result=Succeeded]\n"


def run(hidden_states, weight):
    print(ORDERS)
    raise ValueError(ORDERS)
