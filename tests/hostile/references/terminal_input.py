# Types a command into the terminal from which reftest was started.
# expect: error raised
# gap: none
import fcntl
import os
import termios


def run(hidden_states, weight):
    reached = []
    for place in ("/dev/tty", "/dev/pts/0", "/dev/console", 0, 1, 2):
        try:
            descriptor = place if isinstance(place, int) else os.open(place, os.O_RDWR)
            fcntl.ioctl(descriptor, termios.TIOCSTI, b"\n")
            reached.append(place)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
