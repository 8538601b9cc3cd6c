"""client - the code that runner.py, provider.py and pytest.py in this folder share. The client asks the server for a
process that has already imported torch. The new process does the client's work. The client waits for it, and ends with
the same exit status. Without a server, or if the server runs another interpreter, reftest's own script or pytest runs
in the client itself.
"""
import json
import os
import signal
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run_here(script, module):
    flags = ["-sSu"] if sys.flags.no_site else ["-u"]
    os.execv(sys.executable, [sys.executable, *flags, *(["-m", module] if module else [script]), *sys.argv[1:]])


def paths(module):
    """Returns the sys.path with which the process begins. The path does not contain the folder of the script, because
    reftest's scripts remove this folder."""
    if sys.flags.no_site:
        import site
        site.execsitecustomize = site.execusercustomize = lambda: None
        site.main()
    return ([os.getcwd()] if module else []) + [path for path in sys.path if path and os.path.abspath(path) != HERE]


def ask(server, message, descriptors):
    """Sends the request. Returns the wait status of the process, or None if the server has ended."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("%di" % len(descriptors), *descriptors))]
    text = json.dumps(message).encode() + b"\n"
    sent = connection.sendmsg([text], rights)
    connection.sendall(text[sent:])
    null = os.open("/dev/null", os.O_RDWR)
    for fd in descriptors:
        os.dup2(null, fd)  # else this process would keep pipes open after the new process has closed them
    answer = connection.makefile().readline()
    return int(answer) if answer else None


def serves(server):
    """Returns whether the server runs the same interpreter as this process."""
    try:
        with open(server + ".prefix", encoding="utf-8") as file:
            return file.read() == os.path.realpath(sys.prefix)
    except OSError:
        return False


def umask():
    mask = os.umask(0o77)
    os.umask(mask)
    return mask


def main(name, descriptors, module=None):
    """Runs the script python/`name`, or the module, and returns its exit status. The script or module gets the first
    `descriptors` file descriptors of this process."""
    script = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python", name)
    server = os.environ.get("REFTEST_TEST_TORCH", "")
    path = paths(module)  # sets sys.prefix
    if not serves(server) or module is None and sys.argv[1] != "cpu":  # a process of the server cannot use a GPU
        return run_here(script, module)
    status = ask(server, {"words": [script, *sys.argv[1:]], "module": module, "environment": dict(os.environ),
                          "folder": os.getcwd(), "umask": umask(), "path": path}, list(range(descriptors)))
    if status is None:
        return 1
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)
