# Makes device nodes for the memory and for disks.
# expect: error raised
# gap: capabilities
import os
import stat


def run(hidden_states, weight):
    path = os.path.join(os.environ["TMPDIR"], "device")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 1))
        os.close(os.open(path, os.O_RDONLY))
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
