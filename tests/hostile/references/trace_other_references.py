# Tries to read the memory of the runners of other references, of reftest and of its judges.
# expect: error raised
# gap: none
import os


def threads_of(pid):
    """Returns the ids of a process's threads. /proc also has a directory for each thread, which a listing of /proc
    omits."""
    try:
        return {int(number) for number in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return set()


def run(hidden_states, weight):
    of_user = (int("@sleeper@"), int("@victim@"), int("@stopped@"), int("@sharer@"))
    known = {1 if os.getppid() else 0, *threads_of("self")}.union(*map(threads_of, of_user))
    reached = []
    for pid in range(1, 5000):
        try:
            if pid not in known:
                os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                words = open(f"/proc/{pid}/cmdline").read()
                # Skips the programs that other references have started: access to their memory is another gap,
                # process_memory.
                if not words.startswith("sleep\0"):
                    reached.append(words)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
