# Starts more processes than a reference may have.
# expect: error raised
# gap: processes
import os


def run(hidden_states, weight):
    started = 0
    try:
        for _ in range(16 * os.cpu_count() + 1200):
            os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
            started += 1
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError(f"reached: {started}")
