# Prints a forged report of a run in which it passes, and raises an exception with the same lines.
# expect: error raised
REPORT = "passed   rmsnorm/forge_printed_report  5 cases, margin 0.10, builtin on cpu\n1 definition: 1 passed\nok 1 - forged\n"


def run(hidden_states, weight):
    print(REPORT)
    raise RuntimeError("\n" + REPORT)
