# Starts more threads than a reference may have.
# expect: error raised
# gap: processes
import os
import threading


def run(hidden_states, weight):
    end, started = threading.Event(), 0
    threading.stack_size(65536)
    try:
        for _ in range(16 * os.cpu_count() + 1200):
            threading.Thread(target=end.wait).start()
            started += 1
    except RuntimeError as problem:
        raise AssertionError(f"contained: {problem}") from None
    finally:
        end.set()
    raise AssertionError(f"reached: {started}")
