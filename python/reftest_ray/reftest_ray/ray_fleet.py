"""ray_fleet - a fleet whose workers are actors of a Ray cluster: one `reftest work` for each GPU, or for a number of
CPUs.

Ray must not restart an actor that dies, because the actor's requests must first return to the queue, and only the
coordinator knows which requests these are. Therefore the coordinator starts a new actor, which waits until a node of
the cluster has room for it."""

import sys

import ray

from .fleet import Fleet
from .worker_process import WorkerProcess

WAIT_S = 5  # seconds that events() waits between two checks


class WorkerActor:
    """The actor. The actor runs on the node of its GPU, and its child process uses this GPU because of
    CUDA_VISIBLE_DEVICES."""

    def __init__(self, command):
        self.process = WorkerProcess(command)

    def facts(self):
        return self.process.facts

    def verify(self, message):
        return self.process.verify(message)

    def place(self):
        """Returns the node and the pid of `reftest work`, for tests that kill this process."""
        return ray.get_runtime_context().get_node_id(), self.process.process.pid


class RayFleet(Fleet):
    """`command` starts `reftest work` on a node. `count` is the number of workers. Each worker needs `gpus` GPUs and
    `cpus` CPUs."""

    def __init__(self, command, count, gpus, cpus):
        self.command = command
        # Ray sends the code of an actor with the actor, so a node needs only ray and reftest, not this package.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__package__])
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": 0, "max_concurrency": 128}
        self.kind = ray.remote(WorkerActor).options(scheduling_strategy="SPREAD", **options)
        self.calls = {}  # {pending call: (worker, request number, or None if the call returns the worker's facts)}
        super().__init__(count)

    def _open(self, name):
        self.workers[name] = self.kind.remote(self.command)
        self.calls[self.workers[name].facts.remote()] = (name, None)

    def send(self, name, number, message):
        self.calls[self.workers[name].verify.remote(message)] = (name, number)

    def events(self):
        ready = []
        while not ready and self.calls:
            calls = list(self.calls)
            ready, _ = ray.wait(calls, num_returns=1, timeout=WAIT_S, fetch_local=False)
            if ready:  # ray.wait above returned at the first finished call; now get all finished calls
                ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        return [event for event in map(self._event, ready) if event is not None]

    def _event(self, call):
        name, number = self.calls.pop(call)
        try:
            line = ray.get(call)
        except Exception as why:  # noqa: BLE001 - Ray raises many kinds of errors for dead actors
            if name not in self.workers:
                return None
            return ("failed" if number is None else "died", name, (str(why).strip() or repr(why)).splitlines()[-1])
        if name not in self.workers:
            return None
        return ("ready", name, line) if number is None else ("answer", name, number, line)

    def _close(self, actor):
        ray.kill(actor)


def places(gpus, cpus):
    """Returns the number of workers that fit on the nodes of the cluster."""
    count = 0
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        by_cpu = has.get("CPU", 0) // cpus
        count += int(min(by_cpu, has.get("GPU", 0) // gpus) if gpus else by_cpu)
    return count
