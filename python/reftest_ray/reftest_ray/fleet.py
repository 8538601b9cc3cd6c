"""fleet - the common part of all kinds of fleets, which keeps the workers of a fleet by name.

The coordinator knows a worker only by its name. Each kind of fleet (local_fleet, ray_fleet) implements four methods:
`_open` starts a worker, `_close` ends a worker, send() sends a request, and events() returns answers."""


class Fleet:
    def __init__(self, count):
        self.workers = {}
        self.started = 0
        for _ in range(count):
            self._start()

    def _start(self):
        self.started += 1
        self._open(f"worker {self.started}")

    def dismiss(self, name):
        worker = self.workers.pop(name, None)
        if worker is not None:
            self._close(worker)

    def replace(self, name):
        self.dismiss(name)
        self._start()

    def size(self):
        return len(self.workers)

    def close(self):
        for name in list(self.workers):
            self.dismiss(name)
