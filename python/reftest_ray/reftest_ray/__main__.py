"""reftest-ray - verifies a dataset on the GPUs of a Ray cluster. `reftest-ray --help` lists the options of reftest-ray;
all other options are passed to `reftest verify`."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from .coordinator import Coordinator, FleetError, Merger, facts_of, say
from .scheduler import Scheduler

# Options that determine which cases exist and how they run. Both `reftest verify` and `reftest work` need these
# options.
SHARED_WITH_VALUE = (
    "--repos --sizes --ground-truth --seed --atol --rtol --hit-ratio --tolerance --require-containment --timeout "
    "--memory --isolation --python"
).split()
SHARED_FLAGS = "--no-diagnosis --no-workloads --edge --backward --staged-arena".split()
SEVERITY = (4, 130, 2, 1, 3, 0)  # exit statuses, the most severe first

DESCRIPTION = (
    "Verifies a dataset as `reftest verify` does, on the workers of a Ray cluster. Other options of `reftest verify` "
    "are accepted, too. Each verdict is stored in the cache of this machine as soon as it arrives. At the end, this "
    "command prints what `reftest verify --cached-only` prints with this cache, and returns the same exit status."
)


def read_arguments(words):
    parser = argparse.ArgumentParser(prog="reftest-ray", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--address", help="the Ray cluster (default: RAY_ADDRESS, else a cluster on this host)")
    parser.add_argument("--workers", type=int, help="number of workers (default: as many as the cluster has room for)")
    parser.add_argument(
        "--gpus", type=float, default=1, help="number of GPUs per worker (default: 1; 0: verify on the CPU)"
    )
    parser.add_argument("--cpus", type=int, help="number of CPU cores per worker (default: 4; with --gpus 0: 1)")
    parser.add_argument(
        "--jobs",
        type=int,
        help="number of references that a worker runs in parallel (default: the number of its CPU cores)",
    )
    parser.add_argument(
        "--device-class", help="verify only on devices of this class (default: the class of the first worker's device)"
    )
    parser.add_argument("--reftest", help="path of reftest, the same on every node (default: reftest on PATH)")
    parser.add_argument("--worker-root", help="root of the dataset on the workers' nodes (default: the same path as "
                                              "on this machine)")
    parser.add_argument("--local", action="store_true", help="start the workers on this host, without Ray")
    known, rest = parser.parse_known_args(words)
    known.cpus = known.cpus or (4 if known.gpus else 1)
    known.reftest = known.reftest or shutil.which("reftest")
    if known.reftest is None:
        parser.error("there is no `reftest` on PATH; give its path with --reftest")
    if known.local and known.workers is None:
        parser.error("--local needs --workers N")
    if any(
        word in ("--device", "--jobs", "--dry-run", "--cached-only", "--staged", "--hook", "--solutions")
        or word.startswith("--device=")
        for word in rest
    ):
        parser.error(
            "--device, --dry-run, --cached-only, --staged, --hook and --solutions cannot be used here; --gpus 0 "
            "verifies on the CPU"
        )
    return known, rest


def shared_options(rest):
    """Returns the options in `rest` that `reftest work` also needs."""
    found, words = [], iter(rest)
    for word in words:
        name = word.split("=")[0]
        if word in SHARED_FLAGS or (name in SHARED_WITH_VALUE and "=" in word):
            found.append(word)
        elif word in SHARED_WITH_VALUE:
            found += [word, next(words, "")]
        elif name == "--case":  # add the options with which `reftest work` plans this case, too
            case = word.split("=", 1)[1] if "=" in word else next(words, "")
            found += ["--sizes", "small,medium,large"]
            found += ["--edge"] if case.startswith("edge:") else []
            found += ["--backward"] if case.endswith(":backward") else []
    return found


def option_value(rest, name):
    for i, word in enumerate(rest):
        if word == name:
            return rest[i + 1 : i + 2]
        if word.startswith(name + "="):
            return [word.split("=", 1)[1]]
    return []


def merge_command(reftest, rest):
    words = [reftest, "cache", "merge"]
    for name in ("--root", "--require-containment"):
        words += [part for value in option_value(rest, name) for part in (name, value)]
    return words


def dataset_root(rest):
    """Returns the absolute path of the dataset's root, because workers have another working directory."""
    named = option_value(rest, "--root") or [os.environ.get("REFTEST_ROOT") or os.environ.get("FIB_DATASET_PATH")]
    here = pathlib.Path.cwd()
    parents = [folder for folder in (here, *here.parents) if (folder / "definitions").is_dir()]
    return os.path.abspath(named[0] or (parents or [here])[0])


class Run:
    """One run: asks `reftest` which verdicts are missing, hands the requests for them to workers, and reports the
    results."""

    def __init__(self, known, rest):
        self.known, self.rest = known, rest
        self.device = "cuda" if known.gpus else "cpu"
        self.device_class = known.device_class or (None if known.gpus else "cpu")
        self.results = 0
        self.status = 0
        self.wrong = []  # a message for each case whose verdict could not be stored, and for each unverified definition

    def _verify(self, *more):
        command = [self.known.reftest, "verify", *self.rest, *more]
        if self.device_class == "cpu":
            return [*command, "--device", "cpu"]
        return [*command, "--device-class", self.device_class]

    def requests(self):
        done = subprocess.run(
            self._verify("--dry-run", "--format", "requests"), stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode not in (0, 1, 2, 3):
            raise FleetError(
                "cannot determine which verdicts are missing", done.returncode if done.returncode in SEVERITY else 4
            )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def fleet(self):
        work = [os.path.abspath(self.known.reftest), "work", "--device", self.device, *shared_options(self.rest)]
        work += ["--root", self.known.worker_root or dataset_root(self.rest)]
        work += ["--jobs", str(self.known.jobs or self.known.cpus)]
        if self.known.local:
            from .local_fleet import LocalFleet

            return LocalFleet(work, self.known.workers)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        from .ray_fleet import RayFleet, places

        ray.init(address=self.known.address, log_to_driver=False, logging_level="error")
        count = places(self.known.gpus, self.known.cpus)
        if count == 0:
            each = f"{self.known.gpus:g} GPUs and {self.known.cpus} CPU cores"
            raise FleetError(f"no node of the cluster has {each}, which each worker needs", 3)
        count = self.known.workers or count
        return RayFleet(work, count, self.known.gpus, self.known.cpus)

    def worse(self, status):
        self.status = min(self.status, status, key=SEVERITY.index)

    def report(self, answer):
        name = answer["definition"]
        if "crashed" in answer:
            self.wrong.append(f"{name} {answer['crashed']} error: crashed: three workers died while they verified it")
            self.worse(1)
            return
        self.results += 1
        for case in answer["cases"]:
            if not case["stored"]:
                self._unstored(name, case)

    def _unstored(self, name, case):
        reason = f": {case['reason']}" if case["reason"] else ""
        message = f": {case['message'].splitlines()[0]}" if case["message"] else ""
        self.wrong.append(f"{name} {case['id']} {case['status']}{reason}{message} (not stored)")
        self.worse({"failed": 1, "error": 1, "invalid": 2}.get(case["status"], 3))

    def _coordinate(self, fleet, merger, requests):
        scheduler = Scheduler(requests)
        Coordinator(fleet, scheduler, merger, self.report, self.device_class).run()
        for request, message in scheduler.errors:
            self.wrong.append(f"{request.definition} was not verified: {message}")
            self.worse(3)

    def _first_class(self, fleet):
        """Waits for the first worker, whose device class the run uses. The events that this method reads are kept for
        the coordinator (see Remembering)."""
        events, ready = [], None
        while ready is None:
            events += fleet.events()
            ready = next((event for event in events if event[0] == "ready" and facts_of(event[2])), None)
            if ready is None and len(events) >= fleet.size():
                raise FleetError(f"no worker can start: {events[-1][2]}", 3)
        self.device_class = facts_of(ready[2])["device_class"]
        return events

    def execute(self):
        began = time.monotonic()
        requests = self.requests() if self.device_class else None
        if requests is None or requests:
            merger = Merger(merge_command(self.known.reftest, self.rest))
            fleet = self.fleet()
            try:
                if requests is None:
                    fleet = Remembering(fleet, self._first_class(fleet))
                    requests = self.requests()
                self._coordinate(fleet, merger, requests)
            finally:
                fleet.close()
                merger.close()
        say(f"workers answered {self.results} requests in {time.monotonic() - began:.1f} s")

    def summary(self):
        """Prints what `reftest verify` would print, and returns the exit status of the whole run."""
        sys.stdout.flush()
        done = subprocess.run(self._verify("--cached-only"), check=False)
        for sentence in self.wrong:
            say(sentence)
        self.worse(done.returncode if done.returncode in SEVERITY else 4)
        return self.status


class Remembering:
    """Wraps a fleet. The first call of events() returns the given events, and later calls return new ones."""

    def __init__(self, fleet, events):
        self.fleet, self.kept = fleet, events

    def events(self):
        kept, self.kept = self.kept, []
        return kept or self.fleet.events()

    def __getattr__(self, name):
        return getattr(self.fleet, name)


def main(words=None):
    known, rest = read_arguments(words)
    run = Run(known, rest)
    try:
        run.execute()
    except FleetError as why:
        say(str(why))
        run.worse(why.status)
        if run.device_class is None:
            return run.status
    except KeyboardInterrupt:
        say("interrupted; the verdicts so far are stored")
        return 130
    return run.summary()


if __name__ == "__main__":
    sys.exit(main())
