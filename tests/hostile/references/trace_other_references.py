# Looks for the memory of the runners of other references, of reftest and of its judges.
# expect: error raised
# gap: none
import os


def run(hidden_states, weight):
    own = {int(number) for number in os.listdir("/proc/self/task")}
    known = {int("@sleeper@"), int("@victim@"), int("@stopped@"), int("@sharer@"), 1 if os.getppid() else 0, *own}
    reached = []
    for pid in range(1, 5000):
        try:
            if pid not in known:
                os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                words = open(f"/proc/{pid}/cmdline").read()
                # Programs that another reference has started belong to the gap process_memory.
                if not words.startswith("sleep\0"):
                    reached.append(words)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
