"""failures - determines the cause of an exception in a reference: a mistake of the reference, a limit of the sandbox,
or a problem of this machine. This module also writes the message that runner.py sends to the judge. Only the judge
decides the verdict."""

import errno
import mmap
import resource
import traceback

MESSAGE_MAX = 16384  # characters; of a longer traceback, the middle is omitted


class Mistake(Exception):
    """A mistake of the reference for which Python itself raises no exception. The text of the Mistake is a whole
    sentence."""


class WrongCount(Mistake):
    """The number or the names of the returned outputs differ from those in the definition."""


class Lacking(Mistake):
    """This machine's torch is too old for the reference. The reference itself has no mistake."""


def describe(problem, filename, loading, subject="the reference"):
    """Returns the {"error"} message for an exception of `subject`. The message consists of a sentence, and of those
    lines of the traceback that are in the reference."""
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
            "raised": not isinstance(problem, Mistake), "certain": is_certain(problem, filename, text),
            "needs_gpu": any(words in text for words in NO_GPU), "needs_module": isinstance(problem, ModuleNotFoundError)}


# Parts of the messages of exceptions that torch raises if it finds no GPU.
NO_GPU = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available",
          "Cannot access accelerator device when none is available")


def is_certain(problem, filename, text):
    """Returns true if the reference would fail with any inputs: it uses an undefined name, it returns a wrong number of
    outputs, or its function cannot be called with the inputs as arguments. Returns false for an UnboundLocalError,
    because the inputs may determine whether a local variable has a value."""
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, TypeError):  # the call itself failed if no line of the reference has run
        return all(frame.filename != filename for frame in frames) and any(words in text for words in WRONG_ARGUMENTS)
    if not isinstance(problem, NameError) or isinstance(problem, UnboundLocalError):
        return isinstance(problem, WrongCount)
    return bool(frames) and frames[-1].filename == filename and text.startswith("name '")


# Parts of the messages of Python's TypeError for a call with wrong arguments.
WRONG_ARGUMENTS = ("unexpected keyword argument", "required positional argument", "required keyword-only argument",
                   "multiple values for argument", "positional arguments but", "positional argument but")


def is_accident(problem, name, text):
    return isinstance(problem, (ImportError, Lacking)) or is_lack_of_memory(problem, name, text)


def is_lack_of_memory(problem, name, text):
    if isinstance(problem, MemoryError) or name == "OutOfMemoryError":
        return True
    return any(words in text for words in ("can't allocate memory", "annot allocate memory", "out of memory"))


def name_of(problem):
    """Returns the name of an exception's class. Runs no code of the class to read the name, because a metaclass in the
    reference could return another name."""
    return str(type.__dict__["__name__"].__get__(type(problem)))


class Limit:
    """A limit of the sandbox, with two texts: the reason that the verdict gives, and a sentence that says which limit
    the reference reached and what its author can do."""

    def __init__(self, reason, sentence=""):
        self.reason, self.sentence = reason, sentence


MEMORY = Limit("memory_limit")
PROCESSES = Limit("process_limit", "reached its limit of processes and threads; "
                  "it should start fewer of them at a time")
SPACE = Limit("file_limit", "reached the limit for the total size of its temporary files (%(size)s); it should write "
              "less")
DESCRIPTORS = Limit("file_limit", "reached its limit of open files (%(files)d); "
                    "it should close files that it no longer needs")

# These tables give the limit of the sandbox that causes an exception. The keys of LIMIT_ERRORS are errnos of system
# errors; the keys of LIMIT_TEXTS are parts of exceptions' texts.
LIMIT_ERRORS = {str(errno.ENOMEM): MEMORY, str(errno.EFBIG): SPACE, str(errno.ENOSPC): SPACE, str(errno.EMFILE): DESCRIPTORS}
LIMIT_TEXTS = {"can't allocate memory": MEMORY, "annot allocate memory": MEMORY, "std::bad_alloc": MEMORY,
               "file write failed": SPACE}
STACK = 64 << 20  # bytes, more than a new thread needs


def limit_of(problem, own_folder):
    """Returns the limit that an exception of the reference reports, or None. A full disk counts as a limit of the
    sandbox only if `own_folder` is true: the folder of the reference's temporary files then has a limited size."""
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
    """Did a call that starts a process raise this exception? A read from a non-blocking descriptor can raise an
    exception of the same class."""
    frames = traceback.extract_tb(problem.__traceback__)
    line = frames[-1].line or "" if frames else ""
    return problem.errno == errno.EAGAIN and ("fork" in line or "spawn" in line)


def memory_left():
    """Returns how many more bytes of memory this process may use."""
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
