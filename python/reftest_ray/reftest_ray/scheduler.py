"""scheduler - assigns requests to workers, and handles the requests of a worker that dies.

A request is what `reftest verify --dry-run --format requests` prints for a definition: its name, the digest of its
files, and its cases, each with an estimate of its running time in seconds. The longest request goes first.

If a worker dies, its requests return to the queue. Any of them may have killed the worker, so each becomes a suspect. A
suspect is sent to a worker that gets no other request at the same time. If that worker dies, too, each case of the
suspect becomes a suspect of its own. The cases are not separated earlier, because verdicts of cases that ran alone do not
count for a reference that may keep something from one case to the next. If three workers die while they run a case, the
case counts as crashed, and is not tried again.

This file does not use Ray, starts no process and reads no clock."""

import heapq
from dataclasses import dataclass, field

DEATHS_MOST = 3  # a case counts as crashed after this many workers died while they ran it
ERRORS_MOST = 3  # a request is abandoned after this many workers could not answer it


@dataclass
class Request:
    definition: str
    content: str
    whole: bool
    cases: list  # of {"id": …, "seconds": …}
    number: int = 0
    errors: int = 0
    suspect: bool = False
    failed: set = field(default_factory=set)  # workers that could not answer the request

    @property
    def seconds(self):
        return sum(case.get("seconds", 0) for case in self.cases)

    def names(self):
        return [(self.definition, case["id"]) for case in self.cases]

    def message(self):
        """Returns the request in the form that `reftest work` reads."""
        return {
            "id": str(self.number),
            "definition": self.definition,
            "content": self.content,
            "whole": self.whole,
            "cases": self.cases,
        }


@dataclass
class Worker:
    name: str
    room: int  # how many requests the worker accepts at a time
    running: dict = field(default_factory=dict)  # requests by number

    def has_suspect(self):
        return any(request.suspect for request in self.running.values())


class Scheduler:
    """`requests` are dicts, in the form that `verify --dry-run --format requests` prints."""

    def __init__(self, requests):
        self.waiting = []  # `waiting` and `suspects` are heaps of (-seconds, number, request)
        self.suspects = []
        self.workers = {}
        self.deaths = {}  # for each (definition, case), the number of workers that died while they ran it
        self.numbers = 0
        self.answered = set()  # (definition, case)
        self.crashed = []
        self.errors = []  # (request, message) of each abandoned request
        for request in requests:
            self._queue(Request(request["definition"], request["content"], request["whole"], request["cases"]))

    def _queue(self, request):
        self.numbers += 1
        request.number = self.numbers
        heapq.heappush(self.suspects if request.suspect else self.waiting, (-request.seconds, request.number, request))

    def done(self):
        return not self.waiting and not self.suspects and not any(w.running for w in self.workers.values())

    def left(self):
        """Returns the number of requests without an answer."""
        return len(self.waiting) + len(self.suspects) + sum(len(w.running) for w in self.workers.values())

    def join(self, name, room):
        self.workers[name] = Worker(name, max(1, room))

    def next_for(self, name):
        """Returns the next request for this worker, or None if no request can be sent to it now."""
        worker = self.workers[name]
        if len(worker.running) >= worker.room or worker.has_suspect():
            return None
        queue = self.suspects if self.suspects and not worker.running else self.waiting
        request = self._take(queue, name)
        if request is not None:
            worker.running[request.number] = request
        return request

    def _take(self, queue, name):
        """Removes the first request for this worker from `queue`, and returns the request. Skips a request that this
        worker has failed to answer, unless all workers have failed to answer it."""
        kept, request = [], None
        while queue and request is None:
            entry = heapq.heappop(queue)
            if name in entry[2].failed and self.workers.keys() - entry[2].failed:
                kept.append(entry)
            else:
                request = entry[2]
        for entry in kept:
            heapq.heappush(queue, entry)
        return request

    def answer(self, name, number):
        """Handles an answer. Returns the request that was answered, or None if the request no longer waits for an
        answer."""
        worker = self.workers.get(name)
        request = worker.running.pop(number, None) if worker else None
        if request is not None:
            self.answered.update(request.names())
        return request

    def error(self, name, number, message):
        """Handles a worker that could not answer a request, for example because it has other files. The request returns
        to the queue, because another worker may have the right files, unless ERRORS_MOST workers have failed to answer
        it."""
        worker = self.workers.get(name)
        request = worker.running.pop(number, None) if worker else None
        if request is None:
            return
        request.errors += 1
        request.failed.add(name)
        if request.errors < ERRORS_MOST:
            self._queue(request)
        else:
            self.errors.append((request, message))

    def leave(self, name):
        """Handles a worker that was dismissed, or whose answers are refused. The worker's requests return to the queue,
        and none of their cases becomes a suspect."""
        for request in self.workers.pop(name).running.values():
            self._queue(request)

    def die(self, name):
        """Handles the death of a worker. Returns the cases that now count as crashed."""
        crashed = []
        for request in self.workers.pop(name).running.values():
            left = []
            for case in request.cases:
                key = (request.definition, case["id"])
                self.deaths[key] = self.deaths.get(key, 0) + 1
                if self.deaths[key] >= DEATHS_MOST:
                    crashed.append(key)
                else:
                    left.append(case)
            self._suspect(request, left)
        self.crashed += crashed
        return crashed

    def _suspect(self, request, cases):
        """Queues the cases of a request whose worker died: together the first time, and then one by one."""
        whole = request.whole and not request.suspect
        for part in [[case] for case in cases] if request.suspect else [cases] if cases else []:
            self._queue(Request(request.definition, request.content, whole, part, 0, request.errors, True))
