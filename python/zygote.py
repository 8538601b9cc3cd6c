"""zygote - the process that imports torch once and forks the processes that run references (class Child of runner.py).
It runs no reference.

The pool (workers/pool/zygote.c) and the zygote exchange JSON lines on descriptor 3 (<- to the pool, -> from the pool):

- <- {"template": {"torch", "cuda", "python", "layers"}} or {"refused": message} at the start; "layers" are the layers of
  the sandbox that protect every child, as bits of workers/sandbox/sandbox.h
- -> {"fork": slot, "group": bool, "reads": bool} with two or three descriptors: the child's socket, the pipe for the
  child's output and, if "group" is true, a file of the child's control group; the child writes "0" to this file to join
  the group. If "reads" is true, the child is a reader: it parses source code and runs no reference
- <- {"forked": slot, "pid"} with a pidfd of the child; "pid" is the child's number in the zygote's PID namespace
- <- {"exit": pid, "status"} after a child has ended with this wait status; the child remains a zombie, so that its pid
  is not reused
- -> {"reap": pid, "number"}: the zygote reaps this child; "number" is the pool's number of the child
- <- {"gone": number} if the reaped child had its own PID namespace; all processes of this namespace have ended"""

import ctypes
import os
import select
import signal
import traceback

SYS_PIDFD_OPEN = 434  # this system call has the same number on every architecture

libc = ctypes.CDLL(None, use_errno=True)


class Started:
    """A child that has not been reaped."""

    def __init__(self, keeper, folder):
        self.keeper, self.folder = keeper, folder  # from Sandbox.before_fork
        self.reported = False  # whether the zygote has told the pool that the child has ended


class Zygote:
    def __init__(self, channel, options, sandbox, new_child):
        self.channel = channel
        self.options = options
        self.sandbox = sandbox
        self.new_child = new_child  # makes a Child, in a new process
        self.children = {}  # pid -> Started
        self.wake, wake_write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_write, False)
        self.wake_write = wake_write
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def serve(self):
        poll = select.poll()
        poll.register(self.channel.socket, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.wake:
                    os.read(self.wake, 4096)
                    self.report_ends()
                elif not self.channel.fill():
                    return
            self.answer()

    def answer(self):
        while True:
            message = self.channel.line()
            if message is None:
                return
            if "fork" in message:
                self.fork(message["fork"], message["group"], message["reads"])
            elif message.get("reap") in self.children:
                child = self.children.pop(message["reap"])
                os.waitpid(message["reap"], 0)
                self.sandbox.reap(child.keeper)
                if child.keeper > 0:  # the child's PID namespace and all processes in it have ended
                    self.channel.send({"gone": message["number"]})

    def fork(self, slot, grouped, reads):
        sock, pipe, *group = self.channel.fds[: 2 + grouped]
        if len(group) != grouped:
            raise OSError("a descriptor is missing")
        del self.channel.fds[: 2 + grouped]
        keeper, folder = self.sandbox.before_fork()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (self.wake, self.wake_write, self.channel.socket.fileno(), *self.channel.fds):
                    os.close(fd)
                for fd in group:  # move to the control group first, so that its limits apply to all later steps
                    os.write(fd, b"0")
                    os.close(fd)
                child = self.new_child(sock, pipe, self.options, self.sandbox, folder)
                child.read_texts() if reads else child.serve()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        self.sandbox.after_fork()
        for fd in (sock, pipe, *group):
            os.close(fd)
        self.children[pid] = Started(keeper, folder)
        pidfd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
        self.channel.send({"forked": slot, "pid": pid}, pidfd)
        os.close(pidfd)

    def report_ends(self):
        for pid, child in list(self.children.items()):
            end = None if child.reported else os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None:
                child.reported = True
                self.sandbox.end(child.keeper, child.folder)
                status = end.si_status << 8 if end.si_code == os.CLD_EXITED else end.si_status
                self.channel.send({"exit": pid, "status": status})
        self.end_orphans()

    def end_orphans(self):
        """Kills all processes that references left behind; the kernel has made them children of this process. If each
        reference has its own PID namespace, does nothing, because Sandbox.end kills these processes."""
        if self.sandbox.has_pids:
            return
        for pid in children_of(os.getpid()):
            if pid not in self.children:
                kill(pid)
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def close(self):
        for pid, child in self.children.items():
            kill(pid)
            if not child.reported:
                self.sandbox.end(child.keeper, child.folder)
        while not self.sandbox.has_pids:  # with PID namespaces, the kernel kills the other processes
            left = children_of(os.getpid())
            for pid in left:
                kill(pid)
                os.waitpid(pid, 0)
            if not left:
                return


def kill(pid):
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except OSError:
            pass


def children_of(parent):
    try:  # this file exists only on some kernels (CONFIG_PROC_CHILDREN)
        with open("/proc/self/task/%d/children" % parent) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        pass
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    if int(file.read().rpartition(b")")[2].split()[1]) == parent:
                        found.append(int(name))
            except OSError:
                pass
    return found
