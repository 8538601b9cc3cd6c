#!/usr/bin/env python3
"""fleet_simulation.py - a discrete-event simulation of a fleet: how long do N definitions take on W GPUs, and what is
the bottleneck? The duration of each case is drawn from the times of a measured run. bench/fleet.py measures the costs
of Ray, of the coordinator and of the cache.

    bench/fleet_simulation.py RUN.json [OPTION…]      RUN.json: output of `reftest verify --format json`

A worker has several lanes, each of which runs one request at a time. The worker also keeps one more request for each
lane in its queue. A request occupies a lane for as long as the cases of its definition run. The answer then waits for
the coordinator, which handles one answer at a time: it passes the answer's verdicts to the cache and sends the next
request. Workers die at random. The cases of a dead worker return to the queue, each as a separate request. For
comparison, the function `static` simulates shards that are fixed before the run, like those of a Slurm array. If a GPU
dies, its shard runs again, without the cases that already have a verdict."""

import argparse
import heapq
import json
import random


def measured(path):
    """Returns, for each definition that ran, the seconds that its cases took."""
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    found = [[case["seconds"] for case in d["cases"] if case["device"]] for d in run["definitions"]]
    return [seconds for seconds in found if sum(seconds) > 0]


class Fleet:
    def __init__(self, options, definitions, chance):
        self.options, self.chance = options, chance
        self.now, self.events, self.count = 0.0, [], 0
        expected = {id(cases): sum(cases) for cases in definitions}
        if options.order == "longest":
            definitions = sorted(definitions, key=lambda cases: expected[id(cases)])
        self.queue = definitions  # requests are taken from the end of the list
        self.suspects = []
        self.left = len(definitions)
        self.coordinator_free = self.coordinator_busy = self.lane_busy = 0.0
        self.lost = self.deaths = 0
        self.last_handed_out = 0.0

    def at(self, when, what, *rest):
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, rest))

    def run(self):
        for number in range(self.options.gpus):
            self.at(self.options.start * self.chance.uniform(0.7, 1.3), self.join, Worker(number))
        while self.left > 0:
            self.now, _, what, rest = heapq.heappop(self.events)
            what(*rest)
        return self.now

    def join(self, worker):
        if self.options.hours_to_death > 0:
            self.at(self.now + self.chance.expovariate(1 / (3600 * self.options.hours_to_death)), self.die, worker)
        for _ in range(2 * self.options.lanes):
            self.ask(worker)

    def ask(self, worker):
        """The coordinator sends the next request to the worker. In the worker, the request waits for a lane."""
        queue = self.suspects or self.queue
        if queue:
            self.last_handed_out = self.now
            worker.waiting.append(queue.pop())
            self.begin(worker)

    def begin(self, worker):
        while worker.waiting and len(worker.running) < self.options.lanes:
            cases = worker.waiting.pop(0)
            worker.running[id(cases)] = cases
            seconds = sum(cases) + self.options.request
            self.at(self.now + seconds, self.finish, worker, cases, seconds)

    def finish(self, worker, cases, seconds):
        if worker.dead:
            return
        del worker.running[id(cases)]
        self.lane_busy += seconds
        self.begin(worker)
        handling = self.options.coordinator + self.options.merge * len(cases)
        self.coordinator_free = max(self.coordinator_free, self.now + self.options.latency) + handling
        self.coordinator_busy += handling
        self.at(self.coordinator_free, self.answered, worker, cases)
        worker.answers[id(cases)] = cases

    def answered(self, worker, cases):
        if worker.dead:
            return
        del worker.answers[id(cases)]
        self.left -= 1
        self.ask(worker)

    def die(self, worker):
        """Puts the cases of a worker that died back into the queue. Idle workers do not ask for requests again, so they
        take none of these cases."""
        worker.dead = True
        self.deaths += 1
        for cases in [*worker.waiting, *worker.running.values(), *worker.answers.values()]:
            self.left += len(cases) - 1
            self.suspects += [[seconds] for seconds in cases]
            self.lost += sum(cases)
        self.at(self.now + self.options.start, self.join, Worker(worker.number))


class Worker:
    def __init__(self, number):
        self.number, self.dead = number, False
        self.waiting, self.running, self.answers = [], {}, {}


def static(options, definitions, chance):
    """Divides the cases at random into as many shards as there are GPUs, and returns the seconds of the slowest
    shard."""
    lanes = [[0.0] * options.lanes for _ in range(options.gpus)]
    for cases in definitions:
        for seconds in cases:
            shard = lanes[chance.randrange(options.gpus)]
            shard[shard.index(min(shard))] += seconds + options.request / len(cases)
    ends = [options.start + max(shard) for shard in lanes]
    for i, end in enumerate(ends):
        when = chance.expovariate(1 / (3600 * options.hours_to_death)) if options.hours_to_death > 0 else end
        if when < end:  # the shard is submitted again, and then finds its old verdicts in the cache
            ends[i] = end + options.start
    return max(ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--definitions", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, default=256)
    parser.add_argument("--lanes", type=int, default=4, help="references that a GPU runs at a time")
    parser.add_argument(
        "--definition-seconds", type=float, help="scale the measured definitions to this mean on a lane"
    )
    parser.add_argument(
        "--request", type=float, default=0.0, help="seconds of a lane for each request, beside its cases"
    )
    parser.add_argument("--latency", type=float, default=0.002, help="seconds from a worker to the coordinator")
    parser.add_argument("--coordinator", type=float, default=0.0005, help="seconds of the coordinator for each answer")
    parser.add_argument("--merge", type=float, default=0.0001, help="seconds of the coordinator for each verdict")
    parser.add_argument("--start", type=float, default=30, help="seconds until a worker is ready")
    parser.add_argument("--hours-to-death", type=float, default=100, help="mean time until a worker dies; 0: never")
    parser.add_argument("--order", choices=("longest", "any"), default="longest")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    samples = measured(options.run)
    mean = sum(map(sum, samples)) / len(samples)
    scale = options.definition_seconds / mean if options.definition_seconds else 1
    definitions = [[s * scale for s in chance.choice(samples)] for _ in range(options.definitions)]
    work = sum(map(sum, definitions)) + options.request * len(definitions)
    cases = sum(map(len, definitions))
    longest = max(map(sum, definitions))
    ideal = work / (options.gpus * options.lanes)
    shards = static(options, definitions, random.Random(options.seed + 1))
    fleet = Fleet(options, definitions, chance)
    took = fleet.run()
    print(
        f"{options.definitions} definitions, {cases} cases, {work / 3600:.0f} lane hours, the longest definition {longest:.1f} s"
    )
    print(
        f"{options.gpus} GPUs with {options.lanes} lanes: {took:.0f} s; without any waiting {ideal:.0f} s; lanes busy {100 * fleet.lane_busy / (took * options.gpus * options.lanes):.1f} %"
    )
    print(f"GPU hours: {took * options.gpus / 3600:.1f}; the last request went out at {fleet.last_handed_out:.0f} s")
    print(
        f"coordinator and cache busy {100 * fleet.coordinator_busy / took:.1f} % of the time: {fleet.coordinator_busy / options.definitions * 1e6:.0f} us a definition"
    )
    print(f"{fleet.deaths} deaths, {fleet.lost / 3600:.2f} lane hours lost to them; fixed shards: {shards:.0f} s")


if __name__ == "__main__":
    main()
