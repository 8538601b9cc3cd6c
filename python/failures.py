"""failures - what an exception of a reference means: a mistake, a limit of the sandbox that was reached, or an accident of
this machine; and the message that says so. runner.py sends the message, and the judge decides."""

import errno
import mmap
import resource
import traceback

MESSAGE_MAX = 16384  # the maximum length of a traceback; its middle is cut


class Mistake(Exception):
    """A mistake of the reference that Python does not report by an exception. The message is a whole sentence."""


class WrongCount(Mistake):
    """The function returned another number of outputs than the definition declares, or other names."""


class Lacking(Mistake):
    """Raised if this machine's torch is too old for the reference, although the reference has no mistake."""


def describe(problem, filename, loading, subject="the reference"):
    """Returns the {"error"} message for an exception of `subject`. The message consists of a sentence and of the part of the
    traceback that lies in the reference."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename == filename]
    line = frames[-1].lineno if frames else 0
    name, text, shown = name_of(problem), text_of(problem), traceback.format_list(frames)
    if isinstance(problem, SyntaxError) and problem.filename == filename:
        line, text = problem.lineno or 0, "%s (line %d, column %d)" % (problem.msg, problem.lineno or 0, problem.offset or 0)
        shown += traceback.format_exception_only(type(problem), problem)[:-1]
    if isinstance(problem, Mistake):
        message, shown = text, []
    elif isinstance(problem, SystemExit):
        message = "%s called sys.exit(%s)" % (subject, "" if problem.code is None else text)
    elif loading:
        message = "%s failed to load: %s: %s" % (subject, name, text)
    else:
        message = "%s raised %s: %s" % (subject, name, text)
    if shown:
        message += "\nTraceback (most recent call last):\n" + "".join(shown).rstrip()
    if len(message) > MESSAGE_MAX:
        message = message[: MESSAGE_MAX // 2] + "\n[...]\n" + message[-MESSAGE_MAX // 2 :]
    cuda = "CUDA error" in text or name == "AcceleratorError"
    return {"message": message, "line": int(line), "accident": cuda or is_accident(problem, name, text), "fatal": cuda,
            "raised": not isinstance(problem, Mistake), "certain": is_certain(problem, filename, text)}


def is_certain(problem, filename, text):
    """Do other inputs not help? That is so for a name that the reference does not contain, for a wrong number of
    outputs, and for arguments that the function does not have. Whether a local variable has a value may depend on the
    inputs."""
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, TypeError):  # raised before the first line of the reference
        return all(frame.filename != filename for frame in frames) and any(words in text for words in WRONG_ARGUMENTS)
    if not isinstance(problem, NameError) or isinstance(problem, UnboundLocalError):
        return isinstance(problem, WrongCount)
    return bool(frames) and frames[-1].filename == filename and text.startswith("name '")


# What Python says of a call whose arguments do not fit the function.
WRONG_ARGUMENTS = ("unexpected keyword argument", "required positional argument", "required keyword-only argument",
                   "multiple values for argument", "positional arguments but", "positional argument but")


def is_accident(problem, name, text):
    if isinstance(problem, (MemoryError, ImportError, Lacking)) or name == "OutOfMemoryError":
        return True
    return any(words in text for words in ("can't allocate memory", "annot allocate memory", "out of memory"))


def name_of(problem):
    """Returns the name of an exception's class. A metaclass of the reference cannot answer for it."""
    return str(type.__dict__["__name__"].__get__(type(problem)))


class Limit:
    """A limit of the sandbox: the reason of a verdict, and what the reference did, with the remedy."""

    def __init__(self, reason, sentence=""):
        self.reason, self.sentence = reason, sentence


MEMORY = Limit("memory_limit")
PROCESSES = Limit("process_limit", "reached its limit of processes and threads; it should start fewer at a time")
SPACE = Limit("file_limit", "wrote as much as its temporary files may hold (%(size)s in total, in one file or in several); it should "
              "write less")
DESCRIPTORS = Limit("file_limit", "reached its limit of open files (%(files)d); it should close what it no longer needs")

# Errors of the system that mean a limit, and texts of exceptions that have no such error.
LIMIT_ERRORS = {str(errno.ENOMEM): MEMORY, str(errno.EFBIG): SPACE, str(errno.ENOSPC): SPACE, str(errno.EMFILE): DESCRIPTORS}
LIMIT_TEXTS = {"can't allocate memory": MEMORY, "annot allocate memory": MEMORY, "std::bad_alloc": MEMORY,
               "file write failed": SPACE}
STACK = 64 << 20  # a thread needs less memory than this


def limit_of(problem, own_folder):
    """Returns the limit that an exception of the reference reports, or None. Without a folder of limited size for the
    reference's temporary files, a full disk is no limit."""
    text = text_of(problem)
    if isinstance(problem, MemoryError):
        return MEMORY
    if isinstance(problem, OSError):
        if problem.errno == errno.ENOSPC and not own_folder:
            return None
        return PROCESSES if is_refused_process(problem) else LIMIT_ERRORS.get(str(problem.errno))
    if text == "can't start new thread":
        return MEMORY if memory_left() < STACK else PROCESSES
    return next((limit for words, limit in LIMIT_TEXTS.items() if words in text), None)


def is_refused_process(problem):
    """Did a call that starts a process raise this exception? Other calls raise the same exception if a descriptor is not
    ready."""
    frames = traceback.extract_tb(problem.__traceback__)
    line = frames[-1].line or "" if frames else ""
    return problem.errno == errno.EAGAIN and ("fork" in line or "spawn" in line)


def memory_left():
    """Returns how many bytes this process may still add."""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return STACK
    with open("/proc/self/statm") as file:
        return limit - int(file.read().split()[5]) * mmap.PAGESIZE


def size_text(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return "%.3g %s" % (size / unit, name)
    return "%d bytes" % size


def text_of(problem):
    text = str(problem)
    return text if isinstance(text, str) else type(problem).__name__
