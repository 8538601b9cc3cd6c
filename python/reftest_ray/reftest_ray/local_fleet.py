"""local_fleet - a fleet whose workers are children of this process: for tests, and for one host without Ray."""

import concurrent.futures
import queue

from .fleet import Fleet
from .worker_process import WorkerDied, WorkerProcess


class LocalFleet(Fleet):
    """`command`: starts `reftest work`. `count`: the number of workers."""

    def __init__(self, command, count):
        self.command = command
        self.happened = queue.SimpleQueue()
        self.threads = concurrent.futures.ThreadPoolExecutor(max_workers=128)
        super().__init__(count)

    def _open(self, name):
        self.workers[name] = None  # while it starts
        self.threads.submit(self._run, name)

    def _run(self, name):
        try:
            process = WorkerProcess(self.command)
        except (WorkerDied, OSError) as why:
            self.happened.put(("failed", name, str(why)))
            return
        self.workers[name] = process
        self.happened.put(("ready", name, process.facts))

    def _ask(self, name, number, message):
        try:
            self.happened.put(("answer", name, number, self.workers[name].verify(message)))
        except WorkerDied as why:
            self.happened.put(("died", name, str(why)))

    def send(self, name, number, message):
        self.threads.submit(self._ask, name, number, message)

    def events(self):
        found = [self.happened.get()]
        while not self.happened.empty():
            found.append(self.happened.get())
        return found

    def _close(self, process):
        process.close()

    def close(self):
        super().close()
        self.threads.shutdown(wait=False)
