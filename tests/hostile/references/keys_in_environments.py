# Looks for the key of the cache in the environment and the command line of every process.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    found = "REFTEST_CACHE_KEY" in os.environ
    for pid in ("self", *range(1, 5000)):
        for name in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    found |= b"REFTEST_CACHE_KEY" in file.read()
            except OSError:
                pass
    raise AssertionError("reached" if found else "contained")
