"""worker_process - one `reftest work` as a child process. Several requests may wait for answers at the same time."""

import concurrent.futures
import json
import subprocess
import threading


class WorkerDied(Exception):
    """The process ended without answering."""


def id_of(line):
    """Returns the "id" of an answer, or None if the line has none."""
    try:
        number = json.loads(line).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return number if isinstance(number, str) else None


class WorkerProcess:
    """`command`: the words of the command line that starts `reftest work`."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1, encoding="utf-8",
            errors="backslashreplace",
        )
        self.complaints = []  # the last lines of the process's standard error
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()
        self.waiting = {}  # maps the id of a request to the future of its answer
        self.lock = threading.Lock()
        self.dead = False
        self.facts = self.process.stdout.readline()  # the line with the worker's facts, which facts_of parses
        if not self.facts:
            raise WorkerDied(self._why())
        threading.Thread(target=self._read, daemon=True).start()

    def _listen(self):
        for line in self.process.stderr:
            self.complaints = [*self.complaints[-9:], line.strip()]

    def _why(self):
        status = self.process.wait()
        self.listener.join(1)
        return f"`reftest work` ended with status {status}" + (": " + self.complaints[-1] if self.complaints else "")

    def _read(self):
        for line in self.process.stdout:
            number = id_of(line)
            if number is None:
                self.process.kill()  # this answer has no id, so later answers may be wrong too
                break
            with self.lock:
                future = self.waiting.pop(number, None)
            if future is not None:
                future.set_result(line)
        why = self._why()
        with self.lock:
            self.dead, left = True, list(self.waiting.values())
        for future in left:
            future.set_exception(WorkerDied(why))

    def verify(self, message):
        """Sends a request, a dict with an "id", and returns the line of the answer. Raises WorkerDied."""
        future = concurrent.futures.Future()
        try:
            with self.lock:
                if self.dead:
                    raise WorkerDied("`reftest work` has ended")
                self.waiting[message["id"]] = future
                self.process.stdin.write(json.dumps(message) + "\n")
                self.process.stdin.flush()
        except OSError:
            pass  # the process has ended; _read reports this
        return future.result()

    def close(self):
        self.process.kill()
        self.process.wait()
