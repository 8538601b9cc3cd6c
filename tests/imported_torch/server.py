"""server.py - imports torch once and forks a process for each interpreter that an end-to-end test starts:
python3 -sSu - SOCKET <server.py

An import of torch takes a second of processor time, which is most of the time of a small `reftest verify`. tests/run
starts this server as reftest starts an interpreter (zygote.c), with the environment that references get. harness.sh
sets REFTEST_RUNNER and REFTEST_PROVIDER to the scripts runner.py and provider.py beside this file, and starts pytest
with pytest.py. The scripts runner.py, provider.py and pytest.py send their file descriptors, arguments and environment
to this server, which forks a process that replaces the script. The process runs reftest's own script, or pytest, as if
the interpreter had just started. Its `import torch` takes no time, because torch is already in memory. The sandbox, the
runners and the messages are the same as in any interpreter.

A test of the start or end of an interpreter, or of what an interpreter can reach, has a line "# own interpreter: WHY"
at its head, and does not use this server.

The server reads its program from standard input and not from a file. The reason is that every forked process still has
the server's frames on its stack. Code that walks the stack would open the source file of these frames, and the runner
would think that the reference opened this file.

The client keeps its connection open. When the forked process ends, the server sends the wait status of the process to
the client. If the connection is closed earlier, reftest has killed the client, so the server kills the process.
"""
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import site
import socket
import struct
import sys
import time
import traceback
import types

MESSAGE_MOST = 1 << 20
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def receive(connection):
    """Returns the client's message and its file descriptors, or None if the client has ended."""
    text, descriptors = b"", []
    while not text.endswith(b"\n"):
        part, ancillary, _, _ = connection.recvmsg(MESSAGE_MOST, socket.CMSG_SPACE(64), socket.MSG_CMSG_CLOEXEC)
        if not part:
            return None, descriptors
        text += part
        for _, _, content in ancillary:
            descriptors += struct.unpack("%di" % (len(content) // 4), content)
    return json.loads(text), descriptors


def become(message, descriptors):
    """Gives this process, which was just forked, the file descriptors, arguments, environment and working directory of
    the client, and runs the client's script."""
    os.setsid()
    high = [os.dup2(fd, 100 + at, False) for at, fd in enumerate(descriptors)]
    for at, fd in enumerate(high):
        os.dup2(fd, at)
    os.closerange(len(high), 1 << 16)
    os.umask(message["umask"])
    os.chdir(message["folder"])
    os.environ.clear()
    os.environ.update(message["environment"])
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    sys.argv[:] = message["words"]
    sys.path[:] = message["path"]
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, buffering, closefd=False) for fd, mode, buffering in
                                         ((0, "r", -1), (1, "w", 1), (2, "w", 1)))
    if message["module"] is not None:
        runpy.run_module(message["module"], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    main.__file__ = sys.argv[0]
    sys.modules["__main__"] = main
    with open(sys.argv[0], encoding="utf-8") as file:
        text = file.read()
    exec(compile(text, sys.argv[0], "exec", dont_inherit=True), main.__dict__)


def run(message, descriptors):
    """Runs the script, and ends this process with the exit status that an interpreter would have."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        become(message, descriptors)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def kill(pid):
    """Kills a process that has not been reaped, and its process group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # the process has not created its group yet


class Server:
    def __init__(self, path):
        with open(path + ".prefix", "w", encoding="utf-8") as file:
            file.write(os.path.realpath(sys.prefix))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        wake, wake_write = os.pipe()
        for fd in (wake, wake_write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.wake = wake
        self.poll = select.poll()
        self.poll.register(self.listener, select.POLLIN)
        self.poll.register(wake, select.POLLIN)
        self.started = 0
        self.processes = {}  # {file descriptor of a connection: (connection, pid)}

    def serve(self):
        while True:
            for fd, _ in self.poll.poll():
                if fd == self.wake:
                    os.read(fd, 4096)
                    self.tell_ends()
                elif fd == self.listener.fileno():
                    self.start()
                elif fd in self.processes:
                    self.client_ended(fd)

    def start(self):
        connection, _ = self.listener.accept()
        try:
            message, descriptors = receive(connection)
        except (OSError, ValueError):
            message, descriptors = None, []
        if message is not None:
            pid = os.fork()
            if pid == 0:
                run(message, descriptors)
            self.started += 1
            self.processes[connection.fileno()] = connection, pid
            self.poll.register(connection, select.POLLIN)
        else:
            connection.close()
        for fd in descriptors:
            os.close(fd)

    def end(self):
        """Ends all forked processes and the server, and prints the number of processes and their processor time."""
        for _, pid in self.processes.values():
            kill(pid)
        end = time.monotonic() + 2
        while self.processes and time.monotonic() < end:
            time.sleep(0.02)
            self.tell_ends()
        print("imported_torch: interpreters: %d (%.0f s of processor time)" % (self.started, sum(os.times()[:4])))
        sys.exit(0)

    def client_ended(self, fd):
        kill(self.processes[fd][1])
        self.poll.unregister(fd)

    def tell_ends(self):
        """Reaps processes that have ended, and tells their clients. Processes whose parent has been killed become
        children of this process, so that their processor time is counted."""
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended == 0:
                return
            for fd, (connection, pid) in list(self.processes.items()):
                if pid == ended:
                    self.tell_end(fd, connection, status)

    def tell_end(self, fd, connection, status):
        del self.processes[fd]
        try:
            self.poll.unregister(fd)
        except KeyError:
            pass
        try:
            connection.sendall(b"%d\n" % status)
        except OSError:
            pass  # the client has been killed
        connection.close()


def main():
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.main()
    sys.path[:] = filter(None, sys.path)
    gc.disable()
    import torch
    gc.enable()
    gc.collect()
    gc.freeze()  # so that the garbage collector does not write to these objects, and forked processes share their pages
    server = Server(sys.argv[1])
    signal.signal(signal.SIGTERM, lambda *_: server.end())
    server.serve()


main()
