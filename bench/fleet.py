#!/usr/bin/env python3
"""fleet.py - measures a fleet (python/reftest_ray) on a local Ray cluster: bench/fleet.py BUILD COMMAND. The
interpreter must have the package ray. The commands:

    deaths [RUNS]       kills a random node and a random tenth of the workers (at least one) in each run. Counts
                        lost verdicts, cases that are reported twice, and the cases that a second run would execute

    coordinator [RUNS]  kills the coordinator (`reftest-ray`) in each run, at a random moment. Counts stored verdicts
                        that are gone, workers that outlive the coordinator, and the cases that the next run executes

    overhead            the wall time of a run with one worker that Ray starts, and of `reftest verify --jobs 1`
    dispatch [N]        requests per second through Ray and the coordinator, to workers that answer at once; no
                        verdict is stored
    merge [N]           verdicts per second through `reftest cache merge` (needs xxhash)
    plan [N]            seconds and memory of `verify --dry-run --format requests` over N definitions

The first two commands use a local cluster of two nodes with two CPU workers each. bench/RESULTS.md has results."""

import collections
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "python/reftest_ray"))

from reftest_ray.coordinator import Coordinator, Merger  # noqa: E402
from reftest_ray.scheduler import Scheduler  # noqa: E402

BUILD = (TOP / sys.argv[1]).resolve()
REFTEST = str(BUILD / "reftest")
OPTIONS = ["--sizes", "small", "--device", "cpu"]
SEED = 0x7265667465737433  # the same seed as in cache/verdict_line.c
MARK = "REFTEST_BENCH_FLEET"
os.environ[MARK] = str(os.getpid())
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("REFTEST_PYTHON", str(TOP / ".venv/bin/python"))


def write_dataset(root, count):
    """Writes `count` definitions of RMS norms of different lengths. Their cases are small."""
    folder = root / "definitions/rmsnorm"
    folder.mkdir(parents=True)
    for i in range(count):
        rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
        definition = {
            "name": f"norm_{i}",
            "op_type": "rmsnorm",
            "description": "A small RMS norm. Epsilon is 1e-6.",
            "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64 + 8 * i}},
            "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
            "outputs": {"output": rows},
            "reference": "import torch\n\ndef run(hidden_states, weight):\n    x = hidden_states.float()\n    return (x * "
            "torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)\n",
        }
        (folder / f"norm_{i}.json").write_text(json.dumps(definition))


def requests_of(root):
    command = [REFTEST, "--root", str(root), "verify", "--dry-run", "--format", "requests", *OPTIONS]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def work_command(root):
    return [REFTEST, "work", "--root", str(root), "--jobs", "1", *OPTIONS]


def merger_of(root):
    return Merger([REFTEST, "cache", "merge", "--root", str(root)])


def workers_alive():
    """Returns the process ids of the `reftest work` processes that this program started. The parent of each such
    process is an actor of Ray. The actors of this program have an environment variable, named by the constant MARK,
    whose value is the pid of this program."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().split(b"\0")[:2] != [REFTEST.encode(), b"work"]:
                continue
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if f"{MARK}={os.getpid()}".encode() in pathlib.Path(f"/proc/{parent}/environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return [pid for pid in found if parent_is_actor(pid, found)]


def parent_is_actor(pid, workers):
    """Returns whether the parent of the process `pid` is none of `workers`. If so, the parent is an actor of Ray;
    otherwise the process is a fork of a worker."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) not in workers
    except OSError:
        return False


def coordinate(fleet, root, requests, answered=lambda count: None):
    """Runs the requests. Returns how many times each case was reported, and the scheduler of the coordinator. Calls
    `answered` after each answer."""
    reported = collections.Counter()
    answers = itertools.count(1)

    def report(answer):
        answered(next(answers))
        for case in answer.get("cases", [{"id": answer.get("crashed")}]):
            reported[answer["definition"], case["id"]] += 1

    scheduler, merger = Scheduler(requests), merger_of(root)
    Coordinator(fleet, scheduler, merger, report, "cpu").run()
    merger.close()
    return reported, scheduler


class Killer:
    """Kills workers and one node after a random number of requests has been answered."""

    def __init__(self, seed, cluster, nodes, requests):
        self.random = random.Random(seed)
        self.cluster, self.nodes = cluster, nodes
        count = max(1, sum(self.random.random() < 0.1 for _ in range(4)))
        moments = self.random.sample(range(1, requests - 4), count + 1)
        self.acts = dict(zip(moments, [self.kill_node] + [self.kill_worker] * count))
        self.killed = 0

    def answered(self, count):
        self.acts.get(count, lambda: None)()

    def kill_worker(self):
        alive = workers_alive()
        if alive:
            os.kill(self.random.choice(alive), signal.SIGKILL)
            self.killed += 1

    def kill_node(self):
        self.cluster.remove_node(self.nodes.pop(self.random.randrange(len(self.nodes))), allow_graceful=False)


def deaths(runs):
    import ray
    from ray.cluster_utils import Cluster
    from reftest_ray.ray_fleet import RayFleet

    # The head node has no workers and is never killed, because the coordinator depends on it. An end-to-end test covers
    # the death of the coordinator.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = []
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    lost = twice = again = crashed = killed = died = 0
    for run in range(runs):
        root = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
        write_dataset(root, 60)
        while len(nodes) < 2:
            nodes.append(cluster.add_node(num_cpus=2))
        requests = requests_of(root)
        cases = {(r["definition"], case["id"]) for r in requests for case in r["cases"]}
        began = time.monotonic()
        fleet = RayFleet(work_command(root), 4, 0, 1)
        killer = Killer(run, cluster, nodes, len(requests))
        reported, scheduler = coordinate(fleet, root, requests, killer.answered)
        fleet.close()
        left = requests_of(root)
        lost += len(cases - set(reported)) + sum(len(r["cases"]) for r in left) - len(scheduler.crashed)
        twice += sum(count - 1 for count in reported.values())
        again += sum(len(r["cases"]) for r in left)
        crashed += len(scheduler.crashed)
        killed += killer.killed
        died += fleet.started - 4
        print(
            f"run {run + 1}: {len(cases)} cases, {killer.killed} workers and a node killed, {fleet.started} workers started, "
            f"{len(scheduler.deaths)} cases seen by a death, {time.monotonic() - began:.1f} s; so far: {lost} verdicts lost, "
            f"{twice} reported twice, {crashed} crashed, {again} to run again",
            flush=True,
        )
        shutil.rmtree(root)
    print(f"{runs} runs: {killed} workers and {runs} nodes killed, {died} workers replaced")
    ray.shutdown()
    cluster.shutdown()
    return lost + twice + again


def cases_of(requests):
    return {(r["definition"], case["id"]) for r in requests for case in r["cases"]}


def wait_until(holds, seconds):
    """Returns true if holds() became true within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def kill_coordinator(command, root, most):
    """Starts a coordinator and kills it when `most` cases or fewer are left. Returns the cases that were left shortly
    before the kill."""
    left = cases_of(requests_of(root))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(left) > most and process.poll() is None:
        left = cases_of(requests_of(root))
    process.kill()
    process.wait()
    return left


def coordinator(runs):
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=2)
    chance, bad = random.Random(0), 0
    os.environ["PYTHONPATH"] = str(TOP / "python/reftest_ray")
    for run in range(runs):
        root = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
        write_dataset(root, 40)
        words = ["--address", cluster.address, "--gpus", "0", "--workers", "2", "--reftest", REFTEST]
        command = [sys.executable, "-m", "reftest_ray", *words, "--root", str(root), "--sizes", "small"]
        everything = cases_of(requests_of(root))
        before = kill_coordinator(command, root, chance.randrange(len(everything) // 4, len(everything)))
        outlived = not wait_until(lambda: not workers_alive(), 60)
        after = requests_of(root)
        gone = cases_of(after) - before
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        left = cases_of(requests_of(root))
        went_on = f"workers answered {len(after)} requests" in done.stderr and done.returncode == 0
        bad += (not after) + outlived + len(gone) + len(left) + (not went_on)
        print(
            f"run {run + 1}: {len(everything) - len(cases_of(after))} of {len(everything)} cases stored when the coordinator "
            f"{'died' if after else 'ENDED'}, {len(gone)} of them gone; workers {'outlived it' if outlived else 'ended'}; the next run exits with "
            f"{done.returncode} and {'verifies' if went_on else 'DOES NOT VERIFY'} the {len(after)} definitions that were left",
            flush=True,
        )
        shutil.rmtree(root)
    if ray.is_initialized():
        ray.shutdown()
    cluster.shutdown()
    return bad


def timed(fleet, root, requests):
    """Returns two durations in seconds: from the start to the fleet's last answer, and from the first to the last
    answer."""
    began, moments = time.monotonic(), []
    coordinate(fleet, root, requests, lambda count: moments.append(time.monotonic()))
    fleet.close()
    shutil.rmtree(root / ".reftest")
    return moments[-1] - began, moments[-1] - moments[0]


def overhead(rounds):
    import ray
    from reftest_ray.local_fleet import LocalFleet
    from reftest_ray.ray_fleet import RayFleet

    ray.init(address="local", num_cpus=1, log_to_driver=False, logging_level="error")
    for _ in range(rounds):
        root = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
        write_dataset(root, 100)
        requests = requests_of(root)
        cases = sum(len(r["cases"]) for r in requests)
        command = [REFTEST, "--root", str(root), "verify", "-q", "--jobs", "1", *OPTIONS]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        alone = time.monotonic() - began
        shutil.rmtree(root / ".reftest")
        local, local_steady = timed(LocalFleet(work_command(root), 1), root, requests)
        fleet = RayFleet(work_command(root), 1, 0, 1)
        while not workers_alive():
            time.sleep(0.05)  # the measured time begins when `reftest work` has started
        behind, behind_steady = timed(fleet, root, requests)
        print(
            f"{cases} cases: verify {alone:.2f} s, local fleet {local:.2f} s, behind Ray {behind:.2f} s; from the first to the "
            f"last answer {local_steady:.2f} s and {behind_steady:.2f} s"
        )
        shutil.rmtree(root)
    ray.shutdown()
    return 0


ECHO = """
import json, sys
print(json.dumps({"event": "worker", "checker": "", "device_class": "cpu", "requests": 8}), flush=True)
for line in sys.stdin:
    r = json.loads(line)
    cases = [{"id": c["id"], "status": "passed", "reason": None, "message": None, "stored": True} for c in r["cases"]]
    print(json.dumps({"event": "answer", "id": r["id"], "definition": r["definition"], "cases": cases, "verdicts":
    ["x" * 4000]}), flush=True)
"""


class Believer:
    """Replaces the class Merger: answers that every verdict is accepted, and stores none."""

    def merge(self, lines):
        return [{"refused": None} for _ in lines]


def dispatch(count):
    import ray
    from reftest_ray.ray_fleet import RayFleet

    ray.init(address="local", num_cpus=4, log_to_driver=False, logging_level="error")
    requests = [
        {
            "definition": f"op/{i}",
            "content": "0",
            "whole": True,
            "cases": [{"id": f"c{k}", "seconds": 1} for k in range(3)],
        }
        for i in range(count)
    ]
    fleet = RayFleet([sys.executable, "-c", ECHO], 2, 0, 1)
    ready = fleet.events()
    reports = []
    scheduler = Scheduler(requests)
    coordinator = Coordinator(fleet, scheduler, Believer(), reports.append, "cpu")
    for event in ready:
        coordinator._ready(*event[1:])
    coordinator._hand_out()
    began, cpu = time.monotonic(), time.process_time()
    coordinator.run()
    wall, cpu = time.monotonic() - began, time.process_time() - cpu
    print(
        f"{len(reports)} requests: {len(reports) / wall:.0f} a second of wall time, {1e6 * cpu / len(reports):.0f} us of the "
        "coordinator's processor time each"
    )
    fleet.close()
    ray.shutdown()
    return 0


def processor_time(pid):
    """Returns the seconds of processor time of a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def merge(count):
    import xxhash

    root = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
    write_dataset(root, 1)
    lines = "".join(json.dumps(r) + "\n" for r in requests_of(root))
    done = subprocess.run(work_command(root), input=lines, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[1])
    verdict = answer["verdicts"][0].split("\t", 1)[1]
    merger = merger_of(root)
    answers = []
    for i in range(count):
        one = verdict.replace("=const 64", f"=const {1000 + i}").replace("norm_0", f"norm_{i}")
        answers.append(
            json.dumps({**answer, "verdicts": [xxhash.xxh3_64_hexdigest(one.encode(), seed=SEED) + "\t" + one]})
        )
    for batch in (1, 16, 256):
        part = (
            answers[: count // 3]
            if batch == 1
            else answers[count // 3 : 2 * count // 3]
            if batch == 16
            else answers[2 * count // 3 :]
        )
        began, cpu = time.monotonic(), processor_time(merger.process.pid)
        refused = [
            reply["refused"] for at in range(0, len(part), batch) for reply in merger.merge(part[at : at + batch])
        ]
        seconds, cpu = time.monotonic() - began, processor_time(merger.process.pid) - cpu
        print(
            f"{len(part)} verdicts in batches of {batch}: {len(part) / seconds:.0f} a second, {1e6 * cpu / len(part):.0f} us of "
            f"processor time each, {sum(r is not None for r in refused)} refused"
        )
    merger.close()
    size = sum(f.stat().st_size for f in (root / ".reftest").rglob("*") if f.is_file())
    print(f"{size / count:.0f} bytes of cache a verdict, {len(answers[0])} bytes an answer")
    shutil.rmtree(root)
    return 0


def plan(count):
    root = pathlib.Path(tempfile.mkdtemp(prefix="fleet-"))
    write_dataset(root, count)
    began = time.monotonic()
    found = requests_of(root)
    seconds = time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        f"{len(found)} requests in {seconds:.2f} s, {1e6 * seconds / count:.0f} us and {memory * 1024 / count:.0f} bytes each"
    )
    shutil.rmtree(root)
    return 0


COMMANDS = {
    "deaths": (deaths, 20),
    "coordinator": (coordinator, 5),
    "overhead": (overhead, 2),
    "dispatch": (dispatch, 20000),
    "merge": (merge, 6000),
    "plan": (plan, 10000),
}

if __name__ == "__main__":
    what, default = COMMANDS[sys.argv[2]]
    sys.exit(min(1, what(*([] if default is None else [int(sys.argv[3]) if len(sys.argv) > 3 else default]))))
