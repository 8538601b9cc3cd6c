# Lists the processes of the machine.
# expect: error raised
# gap: process_list
import os


def run(hidden_states, weight):
    try:
        found = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    seen = os.path.exists("/proc/@sleeper@/cmdline")
    raise AssertionError(f"reached: {len(found)}" if seen and len(found) > 3 else f"contained: {len(found)}")
