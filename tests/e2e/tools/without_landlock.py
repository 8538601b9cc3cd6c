"""without_landlock.py COMMAND… runs the command as on a kernel without Landlock, where the system calls of Landlock
fail with ENOSYS."""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_AT_LEAST, JUMP_IF_MORE, RETURN = 0x20, 0x35, 0x25, 0x06  # classic BPF
FIRST, LAST = 444, 446  # the system calls of Landlock have the same numbers on every architecture
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.ENOSYS


def main():
    rows = [(LOAD, 0, 0, 0), (JUMP_IF_AT_LEAST, 0, 2, FIRST), (JUMP_IF_MORE, 1, 0, LAST), (RETURN, 0, 0, FAIL), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(f"without_landlock.py: {os.strerror(ctypes.get_errno())}")
    if libc.syscall(FIRST, None, 0, 1) != -1 or ctypes.get_errno() != errno.ENOSYS:
        sys.exit("without_landlock.py: Landlock is still there")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
