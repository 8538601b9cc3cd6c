"""pseudo_terminal.py [--no-errors] COLUMNS PROGRAM… runs a program on a pseudo terminal, and prints what the program
writes to the terminal.

Standard error also goes to the terminal; with --no-errors, standard error is discarded. $TERMINAL is the kind of
terminal (default: xterm)."""

import fcntl
import os
import pty
import struct
import sys
import termios

os.environ["TERM"] = os.environ.get("TERMINAL", "xterm")
no_errors = sys.argv[1] == "--no-errors"
columns, *program = sys.argv[2 if no_errors else 1 :]
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    if no_errors:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.execv(program[0], program)
text = b""
try:
    while piece := os.read(terminal, 65536):
        text += piece
except OSError:  # the program has closed the terminal
    pass
os.waitpid(child, 0)
sys.stdout.buffer.write(text.replace(b"\r\n", b"\n"))
