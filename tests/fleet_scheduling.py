"""fleet_scheduling.py - tests the rules of a fleet (python/reftest_ray) with simulated workers: which request is sent
first, what happens after the death of a worker, whose answers are accepted, and when a fleet gives up. The tests use no
Ray and start no processes."""

import collections
import concurrent.futures
import json
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python/reftest_ray"))

from reftest_ray import __main__ as command_line
from reftest_ray.coordinator import Coordinator, FleetError
from reftest_ray.scheduler import Scheduler
from reftest_ray.worker_process import WorkerDied, WorkerProcess, id_of


def request(name, *seconds):
    cases = [{"id": f"case {i}", "seconds": s} for i, s in enumerate(seconds)]
    return {"definition": "op/" + name, "content": "00", "whole": True, "cases": cases}


# Answers in a wrong form, which a worker of this build never sends. "ID" stands for the number of the request.
CASE = '{"id": "c", "status": "passed", "reason": null, "message": null, "stored": true}'
MALFORMED = [
    '{"id": "ID"}',
    '{"id": "ID", "event": "later"}',
    '{"id": "ID", "event": ["answer"]}',
    '{"id": "ID", "event": "answer"}',
    '{"id": "ID", "event": "answer", "definition": "op/0"}',
    '{"id": "ID", "event": "answer", "definition": 7, "cases": []}',
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": 7}',
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [7]}',
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [{"id": "c"}]}',
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [' + CASE.replace("true", '"yes"') + "]}",
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [' + CASE.replace('"passed"', "{}") + "]}",
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [' + CASE.replace("null", "7") + "]}",
    '{"id": "ID", "event": "error"}',
    '{"id": "ID", "event": "error", "message": {}}',
    '["ID"]',
    '{"id": "ID", "event": "answer", "definition": "op/0", "cases": [',
    "[" * 100000 + "ID",
]


class FakeMerger:
    """Accepts every answer, except those marked as lies. `stored`: how often each case was stored."""

    def __init__(self):
        self.stored = collections.Counter()

    def merge(self, lines):
        replies = []
        for line in lines:
            answer = json.loads(line)
            refused = answer.get("lie")
            for case in answer.get("cases", []) if refused is None else []:
                self.stored[answer["definition"], case["id"]] += 1
            replies.append({"id": answer.get("id"), "stored": 0, "refused": refused})
        return replies


class FakeFleet:
    """`behaviour(worker, message)` returns what the worker does with a request: "answer", "die", "lie" or an error
    message. `seed` determines the order of the answers. `facts[i]` is what worker number i (in the order of the starts,
    from 0) says about itself. If more workers start than `facts` has entries, the later workers use the last entry."""

    def __init__(self, count, behaviour, facts=({},), seed=0, room=2):
        self.behaviour, self.facts, self.room = behaviour, list(facts), room
        self.random = random.Random(seed)
        self.pending, self.alive, self.started, self.sent = [], set(), 0, []
        for _ in range(count):
            self._start()

    def _start(self):
        name = f"w{self.started}"
        said = self.facts[min(self.started, len(self.facts) - 1)]
        self.started += 1
        self.alive.add(name)
        if said is None:
            self.pending.append(("failed", name, "no such device"))
            return
        facts = {"event": "worker", "device_class": "cpu", "requests": self.room, **said}
        self.pending.append(("ready", name, json.dumps(facts)))

    def send(self, name, number, message):
        assert name in self.alive, "a request for a worker that is gone"
        self.sent.append((name, message))
        what = self.behaviour(name, message)
        answer = {"event": "answer", "id": message["id"], "definition": message["definition"]}
        answer["cases"] = [
            {"id": case["id"], "status": "passed", "reason": None, "message": None, "stored": True}
            for case in message["cases"]
        ]
        if what == "die":
            self.pending.append(("died", name, "killed"))
        elif what in MALFORMED:
            self.pending.append(("answer", name, number, what.replace("ID", message["id"])))
        elif what in ("answer", "lie"):
            more = {"lie": "its signature is wrong"} if what == "lie" else {}
            self.pending.append(("answer", name, number, json.dumps({**answer, **more})))
        else:
            error = {"event": "error", "id": message["id"], "message": what}
            self.pending.append(("answer", name, number, json.dumps(error)))

    def events(self):
        assert self.pending, "nothing can happen any more, and requests are left"
        self.random.shuffle(self.pending)
        count = self.random.randint(1, len(self.pending))
        found, self.pending = self.pending[:count], self.pending[count:]
        died = {event[1] for event in found if event[0] == "died"}
        self.pending = [event for event in self.pending if event[1] not in died]
        return [event for event in found if event[1] in self.alive]

    def dismiss(self, name):
        self.alive.discard(name)
        self.pending = [event for event in self.pending if event[1] != name]

    def replace(self, name):
        self.dismiss(name)
        self._start()

    def size(self):
        return len(self.alive)


class FleetTest(unittest.TestCase):
    def run_fleet(self, requests, fleet, device_class="cpu"):
        self.scheduler, self.merger, self.reports = Scheduler(requests), FakeMerger(), []
        Coordinator(fleet, self.scheduler, self.merger, self.reports.append, device_class).run()
        answered = collections.Counter(
            (answer["definition"], case["id"]) for answer in self.reports for case in answer.get("cases", [])
        )
        crashed = collections.Counter(
            (answer["definition"], answer["crashed"]) for answer in self.reports if "crashed" in answer
        )
        return answered, crashed

    def test_the_longest_goes_first(self):
        fleet = FakeFleet(1, lambda worker, message: "answer", room=1)
        self.run_fleet([request("short", 1), request("long", 3, 4), request("middle", 5)], fleet)
        self.assertEqual([m["definition"] for _, m in fleet.sent], ["op/long", "op/middle", "op/short"])

    def test_a_worker_gets_no_more_than_it_takes(self):
        scheduler = Scheduler([request(str(i), 1) for i in range(9)])
        scheduler.join("w", 3)
        self.assertEqual([scheduler.next_for("w") is not None for _ in range(5)], [True] * 3 + [False] * 2)

    def test_three_deaths_over_one_case_and_no_other_is_crashed(self):
        bad = ("op/3", "case 1")

        def behaviour(worker, message):
            names = [(message["definition"], case["id"]) for case in message["cases"]]
            return "die" if bad in names else "answer"

        requests = [request(str(i), 1, 2, 1) for i in range(12)]
        everything = {("op/" + str(i), f"case {k}") for i in range(12) for k in range(3)}
        for seed in range(50):
            fleet = FakeFleet(3, behaviour, seed=seed, room=4)
            answered, crashed = self.run_fleet(requests, fleet)
            self.assertEqual(crashed, {bad: 1})
            self.assertEqual(answered, dict.fromkeys(everything - {bad}, 1))
            self.assertEqual(self.scheduler.deaths[bad], 3)

    def test_a_suspect_is_alone_in_its_worker(self):
        scheduler = Scheduler([request("a", 5, 5), request("b", 1), request("c", 1)])
        scheduler.join("w0", 2)
        scheduler.next_for("w0")
        self.assertEqual(scheduler.die("w0"), [])
        scheduler.join("w1", 2)
        first = scheduler.next_for("w1")
        self.assertTrue(first.suspect)
        self.assertEqual(first.cases, [{"id": "case 0", "seconds": 5}, {"id": "case 1", "seconds": 5}])
        self.assertIsNone(scheduler.next_for("w1"))
        self.assertEqual(scheduler.die("w1"), [])
        scheduler.join("w2", 2)
        second = scheduler.next_for("w2")
        self.assertTrue(second.suspect and not second.whole)
        self.assertEqual(len(second.cases), 1)
        self.assertIsNone(scheduler.next_for("w2"))

    def test_random_deaths_lose_nothing_and_report_nothing_twice(self):
        for seed in range(200):
            chance = random.Random(seed)
            fleet = FakeFleet(4, lambda worker, message: "die" if chance.random() < 0.1 else "answer", seed=seed)
            requests = [request(str(i), *[chance.random() for _ in range(1 + i % 4)]) for i in range(40)]
            answered, crashed = self.run_fleet(requests, fleet)
            expected = {("op/" + str(i), f"case {k}") for i in range(40) for k in range(1 + i % 4)}
            self.assertEqual(answered + crashed, dict.fromkeys(expected, 1))
            self.assertEqual(set(answered), {key for key in self.merger.stored})

    def test_a_worker_that_lies_is_sent_away_and_its_requests_run_elsewhere(self):
        for seed in range(50):
            fleet = FakeFleet(3, lambda worker, message: "lie" if worker == "w1" else "answer", seed=seed)
            answered, crashed = self.run_fleet([request(str(i), 1, 1) for i in range(20)], fleet)
            self.assertEqual(set(answered.values()), {1})
            self.assertEqual((len(answered), len(crashed), self.scheduler.deaths), (40, 0, {}))
            self.assertEqual(fleet.alive, {"w0", "w2"})

    def test_a_malformed_answer_is_the_death_of_its_worker_and_no_more(self):
        for line in MALFORMED:
            fleet = FakeFleet(2, lambda worker, message, line=line: line if worker == "w0" else "answer")
            answered, crashed = self.run_fleet([request(str(i), 1, 1) for i in range(6)], fleet)
            self.assertEqual((len(answered), set(answered.values()), crashed), (12, {1}, {}), line[:99])
            self.assertEqual(fleet.alive, {"w1", "w2"}, line[:99])
            self.assertEqual(set(self.scheduler.deaths.values()), {1}, line[:99])

    def test_a_case_with_three_malformed_answers_is_crashed(self):
        fleet = FakeFleet(2, lambda worker, message: MALFORMED[0] if message["definition"] == "op/1" else "answer")
        answered, crashed = self.run_fleet([request(str(i), 1) for i in range(3)], fleet)
        self.assertEqual((len(answered), crashed), (2, {("op/1", "case 0"): 1}))

    def test_malformed_first_lines_are_failed_starts(self):
        for facts in (*({"requests": bad} for bad in ("8", 0, True)), {"device_class": None}, {"device_class": 7}):
            fleet = FakeFleet(2, lambda worker, message: "answer", (facts, {}))
            self.assertEqual(len(self.run_fleet([request("a", 1)], fleet)[0]), 1)
            with self.assertRaisesRegex(FleetError, "no worker can start: the worker's description of itself is "
                                                    "malformed"):
                self.run_fleet([request("a", 1)], FakeFleet(1, None, (facts,)))

    def test_a_fleet_of_liars_gives_up(self):
        fleet = FakeFleet(3, lambda worker, message: "lie")
        with self.assertRaisesRegex(FleetError, "no worker is left.*signature") as caught:
            self.run_fleet([request("a", 1)], fleet)
        self.assertEqual((caught.exception.status, self.reports), (3, []))

    def test_another_build_and_another_device_class_get_no_request(self):
        facts = ({"lie": "another build"}, {"device_class": "sm_90"}, {})
        fleet = FakeFleet(3, lambda worker, message: "answer", facts)
        answered, _ = self.run_fleet([request(str(i), 1) for i in range(9)], fleet)
        self.assertEqual(len(answered), 9)
        self.assertEqual({worker for worker, _ in fleet.sent}, {"w2"})

    def test_a_device_that_does_not_exist_ends_the_run(self):
        with self.assertRaisesRegex(FleetError, "no worker can start: no such device") as caught:
            self.run_fleet([request("a", 1)], FakeFleet(2, None, (None,)))
        self.assertEqual(caught.exception.status, 3)

    def test_a_place_that_fails_once_does_not(self):
        fleet = FakeFleet(2, lambda worker, message: "answer", (None, {}, None, None, {}))
        self.assertEqual(len(self.run_fleet([request(str(i), 1) for i in range(4)], fleet)[0]), 4)

    def test_a_request_that_no_worker_can_answer_is_given_up(self):
        fleet = FakeFleet(
            2, lambda worker, message: "its files differ" if message["definition"] == "op/1" else "answer"
        )
        answered, crashed = self.run_fleet([request(str(i), 1) for i in range(3)], fleet)
        self.assertEqual((sorted(key[0] for key in answered), dict(crashed)), (["op/0", "op/2"], {}))
        self.assertEqual([(r.definition, why) for r, why in self.scheduler.errors], [("op/1", "its files differ")])
        self.assertEqual(sum(m["definition"] == "op/1" for _, m in fleet.sent), 3)


class WorkerProcessTest(unittest.TestCase):
    def test_bytes_that_are_no_text_are_a_death(self):
        program = "import sys\nprint('{}', flush=True)\nsys.stdin.readline()\nsys.stdout.buffer.write(%r)\n"
        program += "sys.stdout.flush()\nsys.stdin.read()"
        for said in (b'{"id": "1", "event": "\xff"}\n', b'\xff{"id": "1"}\n'):
            worker = WorkerProcess([sys.executable, "-c", program % said])
            with concurrent.futures.ThreadPoolExecutor() as pool:
                call = pool.submit(worker.verify, {"id": "1"})
                try:
                    self.assertIsInstance(call.exception(60), WorkerDied)
                finally:
                    worker.close()


class CommandLineTest(unittest.TestCase):
    def test_workers_get_the_options_that_decide_the_cases(self):
        rest = ["--sizes", "small", "--edge", "--op-type", "moe", "--seed=7", "--strict", "name", "--timeout", "9"]
        self.assertEqual(
            command_line.shared_options(rest), ["--sizes", "small", "--edge", "--seed=7", "--timeout", "9"]
        )
        self.assertEqual(command_line.shared_options(["--case", "x"]), ["--sizes", "small,medium,large"])

    def test_the_most_severe_status_wins(self):
        for statuses, expected in (((0, 3), 3), ((1, 3), 1), ((1, 2), 2), ((3, 0), 3), ((130, 1), 130), ((0,), 0)):
            run = command_line.Run(command_line.read_arguments(["--reftest", "x", "--gpus", "0"])[0], [])
            for status in statuses:
                run.worse(status)
            self.assertEqual(run.status, expected)

    def test_what_is_in_no_cache_counts_for_no_success(self):
        for status, expected in (
            ("passed", 3),
            ("checked", 3),
            ("skipped", 3),
            ("failed", 1),
            ("error", 1),
            ("invalid", 2),
        ):
            run = command_line.Run(command_line.read_arguments(["--reftest", "x", "--gpus", "0"])[0], [])
            case = {"id": "c", "status": status, "reason": None, "message": None, "stored": False}
            run.report({"definition": "op/a", "cases": [case]})
            self.assertEqual((run.status, len(run.wrong)), (expected, 1))

    def test_an_answer_to_nobody_is_none(self):
        for line in ("", "{", "[]", "7", '{"id": 7}', '{"id": null}', "[" * 100000):
            self.assertIsNone(id_of(line))
        self.assertEqual(id_of('{"id": "7"}'), "7")


if __name__ == "__main__":
    unittest.main()
