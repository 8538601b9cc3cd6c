# Tries to kill all possible pids except its own, and then reports how many processes there were.
# expect: error raised
# gap: signals
# destroys: run
import os
import signal


def run(hidden_states, weight):
    own = {int(number) for number in os.listdir("/proc/self/task")}
    ended = 0
    for pid in range(1, 70000):
        try:
            if pid not in own and pid < 65536:
                os.kill(pid, 0)
                ended += os.readlink(f"/proc/{pid}/exe") != os.readlink("/proc/self/exe")
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    raise AssertionError(f"reached: {ended} processes" if ended else "contained")
