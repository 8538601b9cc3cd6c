"""coordinator - the main loop: sends requests to a fleet, receives answers, and stores their verdicts in the cache at
once.

A fleet has these methods (fleet.py, with local_fleet.py or ray_fleet.py):
    events()             waits, and returns a list of what happened: ("ready", worker, facts), ("died", worker, why),
                         ("answer", worker, number, line), and ("failed", worker, why) if a worker could not start
    send(worker, number, message)  sends the request with this number
    dismiss(worker)      ends a worker; no event about it follows
    replace(worker)      starts another worker in the place of one that died or was dismissed
    size()               returns how many workers are running or starting
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading

STARTS_MOST = 3  # if no worker was ever ready, the run ends after this many failed starts per worker


class FleetError(Exception):
    """Raised if the fleet cannot continue. `status` is the exit status with which reftest-ray must end."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


class Merger:
    """Passes the verdicts of answers to a child process `reftest cache merge`, which stores the verdicts that it
    accepts."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.replies = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.replies.put(json.loads(line))
        self.replies.put(None)

    def merge(self, lines):
        """Sends lines and returns a reply for each line. If a reply says that a verdict was stored, the verdict is in
        the cache when this function returns."""
        try:
            for line in lines:
                self.process.stdin.write(line if line.endswith("\n") else line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass
        replies = [self.replies.get() for _ in lines]
        if None in replies:
            raise FleetError("`reftest cache merge` ended, so verdicts can no longer be stored", 4)
        return replies

    def close(self):
        with contextlib.suppress(OSError):  # the child may have ended without reading everything
            self.process.stdin.close()
        self.process.wait()


def shown(text):
    """Escapes control sequences, which a terminal would execute, and commands, which a CI system would execute. Parts
    of the text come from references and workers, which are not trusted."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe.replace("##[", "#\\x23[").replace("##vso[", "#\\x23vso[")


def say(text):
    print("reftest-ray: " + shown(text), file=sys.stderr, flush=True)


def object_of(line):
    """Parses a line that contains a JSON object. Returns an empty object if the line does not contain one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def facts_of(line):
    """Parses a line with a worker's facts. Returns the facts, or None if the line is malformed."""
    facts = object_of(line)
    room = facts.get("requests", 1)
    good = isinstance(facts.get("device_class"), str) and type(room) is int and room > 0
    return facts if good else None


def is_case(case):
    if not isinstance(case, dict):
        return False
    texts = all(isinstance(case.get(name), str) for name in ("id", "status"))
    optional = all(isinstance(case.get(name, 0), (str, type(None))) for name in ("reason", "message"))
    return texts and optional and isinstance(case.get("stored"), bool)


def answer_of(line):
    """Parses a line with an answer. Returns the answer, or None if the line is malformed."""
    answer = object_of(line)
    if answer.get("event") == "error":
        return answer if isinstance(answer.get("message"), str) else None
    cases = answer.get("cases")
    good = answer.get("event") == "answer" and isinstance(answer.get("definition"), str) and isinstance(cases, list)
    return answer if good and all(map(is_case, cases)) else None


class Coordinator:
    """Runs requests on a fleet. `report(answer)` is called once for each request that was answered, and once for each
    case that crashed. Workers whose device does not have the class `device_class` are dismissed. If `device_class` is
    None, the class of the first worker is used."""

    def __init__(self, fleet, scheduler, merger, report, device_class=None):
        self.fleet, self.scheduler, self.merger, self.report = fleet, scheduler, merger, report
        self.device_class = device_class
        self.failures = 0  # how many workers have failed to start since a worker was last ready
        self.worked = False

    def run(self):
        while not self.scheduler.done():
            events = self._well_formed(self.fleet.events())
            for worker, why in self._take_answers([event for event in events if event[0] == "answer"]):
                self._send_away(worker, why)
            for kind, worker, *rest in events:
                if kind != "answer":
                    getattr(self, "_" + kind)(worker, *rest)
            self._hand_out()

    def _well_formed(self, events):
        """After a malformed answer, the worker counts as dead, and its later messages are ignored."""
        bad = {event[1] for event in events if event[0] == "answer" and answer_of(event[3]) is None}
        return [event for event in events if event[1] not in bad] + [
            ("died", worker, "its answer is malformed") for worker in sorted(bad)
        ]

    def _hand_out(self):
        for name in list(self.scheduler.workers):
            request = self.scheduler.next_for(name)
            while request is not None:
                self.fleet.send(name, request.number, request.message())
                request = self.scheduler.next_for(name)

    def _take_answers(self, events):
        """Stores the verdicts of answers. Returns (worker, reason) for each worker whose answers are refused."""
        refused = {}
        events = [event for event in events if event[1] in self.scheduler.workers]
        for (_, worker, number, line), reply in zip(events, self.merger.merge([event[3] for event in events])):
            if reply["refused"] is not None:
                refused.setdefault(worker, reply["refused"])
            if worker not in refused:
                self._take_answer(worker, number, answer_of(line))
        return refused.items()

    def _take_answer(self, worker, number, answer):
        if answer["event"] == "error":
            self.scheduler.error(worker, number, answer["message"])
        elif self.scheduler.answer(worker, number) is not None:
            self.report(answer)

    def _send_away(self, worker, why):
        say(f"{worker} is not used any more: {why}")
        if worker in self.scheduler.workers:
            self.scheduler.leave(worker)
        self.fleet.dismiss(worker)
        self._need_workers(why)

    def _need_workers(self, why):
        if self.fleet.size() == 0:
            raise FleetError(f"no worker is left; the last one ended: {why}", 3)

    def _ready(self, worker, line):
        facts = facts_of(line)
        if facts is None:
            self._failed(worker, "the worker's description of itself is malformed")
            return
        reply = self.merger.merge([line])[0]
        if reply["refused"] is not None:
            self._send_away(worker, reply["refused"])
            return
        found = facts["device_class"]
        self.device_class = self.device_class or found
        if found != self.device_class:
            self._send_away(worker, f"the worker's device is a {found}, but the verdicts must be from a "
                                    f"{self.device_class}")
            return
        self.failures, self.worked = 0, True
        self.scheduler.join(worker, facts.get("requests", 1))

    def _died(self, worker, why):
        if worker not in self.scheduler.workers:
            return
        for definition, case in self.scheduler.die(worker):
            self.report({"definition": definition, "crashed": case})
        say(f"{worker} died ({why}); its requests are sent to other workers")
        self.fleet.replace(worker)

    def _failed(self, worker, why):
        self.failures += 1
        self.fleet.dismiss(worker)
        if not self.worked and self.failures >= STARTS_MOST * max(1, self.fleet.size()):
            raise FleetError(f"no worker can start: {why}", 3)
        if self.worked and self.failures >= 10 * STARTS_MOST * max(1, self.fleet.size()):
            raise FleetError(f"no more workers can be started: {why}", 3)
        self.fleet.replace(worker)
