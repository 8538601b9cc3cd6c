# Asks the kernel to kill other processes first when memory runs out.
# expect: error raised
# gap: memory


def run(hidden_states, weight):
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("-1000")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
