"""local_fleet - a fleet whose workers are children of this process: for tests, and for one host without Ray."""

import concurrent.futures
import queue

from .worker_process import WorkerDied, WorkerProcess


class LocalFleet:
    """`command`: starts `reftest work`. `count`: the number of workers."""

    def __init__(self, command, count):
        self.command = command
        self.happened = queue.SimpleQueue()
        self.threads = concurrent.futures.ThreadPoolExecutor(max_workers=128)
        self.processes = {}  # by name; None while it starts
        self.started = 0
        for _ in range(count):
            self._start()

    def _start(self):
        self.started += 1
        name = f"worker {self.started}"
        self.processes[name] = None
        self.threads.submit(self._open, name)

    def _open(self, name):
        try:
            process = WorkerProcess(self.command)
        except (WorkerDied, OSError) as why:
            self.happened.put(("failed", name, str(why)))
            return
        self.processes[name] = process
        self.happened.put(("ready", name, process.facts))

    def _ask(self, name, number, message):
        try:
            self.happened.put(("answer", name, number, self.processes[name].verify(message)))
        except WorkerDied as why:
            self.happened.put(("died", name, str(why)))

    def send(self, name, number, message):
        self.threads.submit(self._ask, name, number, message)

    def events(self):
        found = [self.happened.get()]
        while not self.happened.empty():
            found.append(self.happened.get())
        return found

    def dismiss(self, name):
        process = self.processes.pop(name, None)
        if process is not None:
            process.close()

    def replace(self, name):
        self.dismiss(name)
        self._start()

    def size(self):
        return len(self.processes)

    def close(self):
        for name in list(self.processes):
            self.dismiss(name)
        self.threads.shutdown(wait=False)
