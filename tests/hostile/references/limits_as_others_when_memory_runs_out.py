# Opens its own files below /proc for writing, and asks the kernel to treat this process like all others when memory
# runs out.
# expect: error raised
# gap: memory
import ctypes

DUMPABLE = 4


def run(hidden_states, weight):
    ctypes.CDLL(None).prctl(DUMPABLE, 1, 0, 0, 0)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("0")
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
