"""bare_loop - compares reftest with a loop that runs each reference twice and checks nothing.

    python3 bench/bare_loop.py DIRECTORY [--device cuda:0] [--jobs N] [-- OPTION…]
    python3 bench/bare_loop.py --roots ROOT… [--device cuda:0] [--jobs 1,2,4,8,16] [-- OPTION…]

DIRECTORY holds problems of SOL-ExecBench, one directory each, with definition.json and workload.jsonl. reftest and the
loop get the same dataset: the definitions of these problems, each with the workload line whose inputs have the fewest
bytes. reftest also runs its small and medium cases, and does all its checks. The loop is one process that imports torch
once. The program prints one line for each problem, then the times of reftest and of the loop, and their ratio. OPTIONs
are passed to `reftest verify`. From reftest's trace, the program also makes a table of the runs of references. In this
table, the row `usual` is for the runs that every case needs. Each other row is for one kind of extra run, which only
one check needs. A row shows how long the judges (the processes that check outputs) waited for these runs, and how long
the judges then worked. The row `usual` also counts the time in which judges wait for a free runner (a process that runs
references).

With --roots, reftest verifies each dataset ROOT without a cache (small and medium sizes, no workloads). reftest
verifies each dataset twice for each number of jobs: once with runners that serve several definitions, and once with
--isolation own. The loop runs each reference twice on the shapes of the cases that reftest ran. reftest makes the
integer and boolean inputs and the scalars for these shapes (bench/integer_inputs.c); the loop makes random floats. The
time for making the inputs is not part of the loop's time. The program counts the cases in which a reference refuses the
inputs of the loop. The loop also runs in as many processes as reftest has jobs. The definitions are divided among these
processes, which check nothing. Their time is therefore the least time that a program with as many processes can take.

The program makes two tables from reftest's trace. They show how each run spent its time. The percentages in the first
table refer to the sum of the times of all jobs. The first table has these columns:

    start      seconds until the first runner was ready
    wait       waiting for a judge or a runner, including the start of Python and torch
    load       loading the reference's source code
    run        executing the reference; its judge may work at the same time
    judge      the work of the judge while the reference waits
    none       the time at the end of the run in which a job has no work left
    host, GPU  how much the memory in use grew from the start of the run to its peak, in GiB

The second table lists how many seconds the judges spent on each kind of work; `hidden` is the time in which judges
worked while a reference ran.

The benchmark trusts the files: it evaluates their expressions and runs their references without containment."""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

REFTEST = Path(__file__).resolve().parent.parent / os.environ.get("REFTEST_BUILD", "build") / "reftest"


def axes_of(definition, given):
    """Returns the values of all axes. The values come from `given`, from the definition (constant axes), or from
    expressions. Axes may be declared in any order."""
    values = dict(given)
    declared = definition["axes"]
    values.update({name: axis["value"] for name, axis in declared.items() if "value" in axis})
    for _ in declared:
        for name, axis in declared.items():
            if "expression" in axis and name not in values:
                try:
                    values[name] = eval(axis["expression"], {"__builtins__": {}}, values)
                except NameError:
                    pass  # the expression needs an axis that a later round computes
    return values


def shape_of(spec, axes):
    return [eval(str(size), {"__builtins__": {}}, axes) for size in spec["shape"]]


def input_bytes(definition, line):
    total = 0
    axes = axes_of(definition, line.get("axes", {}))
    for spec in definition["inputs"].values():
        size = 8
        for length in shape_of(spec, axes) if spec["shape"] is not None else []:
            size *= length
        total += size
    return total


def smallest_line(problem, definition):
    lines = [json.loads(line) for line in (problem / "workload.jsonl").read_text().splitlines() if line.strip()]
    lines = [line for line in lines if all(source["type"] != "safetensors" for source in line["inputs"].values())]
    return min(lines, key=lambda line: input_bytes(definition, line), default=None)


def copy_problems(directory, root):
    """Writes the problems as definitions/sol/NAME.json, each with the workload line whose inputs have the fewest bytes.
    Skips a problem if each of its workload lines needs tensor files."""
    for folder in (root / "definitions" / "sol", root / "workloads" / "sol"):
        folder.mkdir(parents=True)
    for path in sorted(Path(directory).glob("*/definition.json")):
        definition = json.loads(path.read_text())
        line = smallest_line(path.parent, definition)
        if line is None:
            print(f"{definition['name']}: every line needs tensor files; left out")
            continue
        shutil.copy(path, root / "definitions" / "sol" / f"{definition['name']}.json")
        (root / "workloads" / "sol" / f"{definition['name']}.jsonl").write_text(json.dumps(line) + "\n")


def random_tensor(torch, shape, dtype, device):
    kind = getattr(torch, dtype)
    if kind == torch.bool:
        return torch.randint(0, 2, shape, device=device, dtype=torch.bool)
    if not kind.is_floating_point:
        return torch.randint(0, 2, shape, device=device, dtype=kind)
    if kind.itemsize == 1:
        bits = torch.randint(0, 0x38, shape, device=device, dtype=torch.uint8)
        return bits.view(kind)
    return torch.rand(shape, device=device, dtype=torch.float32).to(kind)  # not below 0, as probabilities


def inputs_of(torch, definition, line, module, device):
    axes = axes_of(definition, line.get("axes", {}))
    sources = line["inputs"]
    scalars = {name: source["value"] for name, source in sources.items() if source["type"] == "scalar"}
    made = {}
    if any(source["type"] == "custom" for source in sources.values()):
        made = module[definition["custom_inputs_entrypoint"]]({**axes, **scalars}, torch.device(device))
    return [made[name] if sources.get(name, {}).get("type") == "custom" else scalars[name] if name in scalars else
            random_tensor(torch, shape_of(spec, axes), spec["dtype"], device)
            for name, spec in definition["inputs"].items()]


def loop(root, device):
    """Runs each reference twice. Prints one JSON line for each problem."""
    import torch
    for path in sorted(Path(root).glob("definitions/sol/*.json")):
        begin, error = time.perf_counter(), None
        try:
            definition = json.loads(path.read_text())
            line = json.loads((Path(root) / "workloads" / "sol" / f"{path.stem}.jsonl").read_text())
            module = {"__name__": "reference"}
            exec(compile(definition["reference"], str(path), "exec"), module)
            inputs = inputs_of(torch, definition, line, module, device)
            for _ in range(2):
                module["run"](*inputs)
                if device != "cpu":
                    torch.cuda.synchronize()
        except Exception as raised:  # a reference may raise any exception; the loop goes on with the next file
            error = f"{type(raised).__name__}: {str(raised).splitlines()[0] if str(raised) else ''}"
        print(json.dumps({"name": path.stem, "seconds": time.perf_counter() - begin, "error": error}), flush=True)


def case_inputs(torch, definition, axes, made, device):
    """Returns the inputs of a case. `made` maps the names of scalars and of integer and boolean inputs to their
    values."""
    axes = axes_of(definition, axes)
    inputs = {}
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = made.get(name, 1 if spec["dtype"].startswith(("int", "bool")) else 1.0)
            if spec["dtype"].startswith("int"):
                inputs[name] = int(inputs[name])
        elif name in made:
            kind = getattr(torch, spec["dtype"])
            inputs[name] = torch.tensor(made[name], dtype=torch.int64).to(kind).view(shape_of(spec, axes)).to(device)
        else:
            inputs[name] = random_tensor(torch, shape_of(spec, axes), spec["dtype"], device)
    return inputs


def loop_cases(path, device):
    """Reads a JSON file [[path of a definition, op_type, name, [axes of a case…]]…], and runs the reference of each
    definition twice for each of its cases. Each line of the file PATH.inputs has the integer and boolean inputs and the
    scalars of one case."""
    begin = time.perf_counter()
    import torch
    torch.ones(1, device=device)  # creates the CUDA context; the loop's time includes this step
    refused, count, prepared, took = 0, 0, 0.0, []
    ready = time.perf_counter() - begin
    lines = open(path + ".inputs")
    for file, _, _, cases in json.loads(Path(path).read_text()):
        took.append(0.0)
        definition, module = json.loads(Path(file).read_text()), {"__name__": "reference"}
        try:
            exec(compile(definition["reference"], file, "exec"), module)
        except Exception:
            refused, count = refused + len(cases), count + len(cases)
            for _ in cases:
                lines.readline()
            continue
        for axes in cases:
            count += 1
            start = time.perf_counter()
            inputs = case_inputs(torch, definition, axes, json.loads(lines.readline()), device)
            if device != "cpu":
                torch.cuda.synchronize()
            prepared += time.perf_counter() - start
            start = time.perf_counter()
            try:
                for _ in range(2):
                    module["run"](**inputs)
                    if device != "cpu":
                        torch.cuda.synchronize()
            except Exception:  # the reference refuses its inputs
                refused += 1
            took[-1] += time.perf_counter() - start
    print(json.dumps({"seconds": time.perf_counter() - begin - prepared, "ready": ready, "refused": refused, "cases": count, "took": took}))


def run_loops(parts, device):
    """Runs the loop in as many processes as there are parts, all at the same time. Each part is a list in the format
    that loop_cases reads. Returns the JSON objects that the processes print."""
    processes, environment = [], dict(os.environ)
    if len(parts) > 1:
        environment["OMP_NUM_THREADS"] = str(max(1, os.cpu_count() // len(parts)))
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            path = f"{folder}/{number}.json"
            Path(path).write_text(json.dumps(part))
            with open(path + ".inputs", "w") as inputs:
                subprocess.run([REFTEST.parent / "bench" / "integer_inputs", path], stdout=inputs, check=True)
        for number in range(len(parts)):
            processes.append(subprocess.Popen([sys.executable, __file__, "--loop-cases", "--device", device, f"{folder}/{number}.json"],
                                              stdout=subprocess.PIPE, text=True, env=environment))
        printed = [process.communicate()[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        raise SystemExit(f"a loop ended with {[process.returncode for process in processes]}")
    return [json.loads(text.splitlines()[-1]) for text in printed]


def divide(bare, took, count):
    """Divides the definitions among `count` processes. Starts with the slowest definition, and gives each definition to
    the process that has the least work so far. `took` lists the seconds that each definition took."""
    parts, sums = [[] for _ in range(count)], [0.0] * count
    for seconds, definition in sorted(zip(took, bare), key=lambda pair: -pair[0]):
        least = sums.index(min(sums))
        parts[least].append(definition)
        sums[least] += seconds
    return [part for part in parts if part]


def sums(pattern, trace):
    """Adds up the figures of each name over all lines of the trace that match `pattern`. After the match, a line has
    the form "NAME FIGURE, NAME FIGURE…"."""
    total = collections.Counter()
    for line in re.findall(pattern + "(.*)", trace):
        for part in line.split(", "):
            name, figure = part.rsplit(" ", 1)
            total[name] += float(figure)
    return total


def where_seconds_went(trace):
    """Computes the columns of the tables from the lines of the trace."""
    ready = [float(seconds) for seconds in re.findall(r'child \d+: \{"ready": true, "seconds": ([0-9.e-]+)\}', trace)]
    new = [seconds for seconds in ready if seconds > 0]
    lanes, judges = sums(r"pool: seconds of \d+ lanes: ", trace), sums(r"judge: seconds: ", trace)
    judges["hidden"] = sum(judges.values()) - judges["waits"] - lanes["judges"]
    first = re.search(r"^(\d+\.\d+) ", trace, re.M), re.search(r'^(\d+\.\d+) runners: child \d+: \{"ready"', trace, re.M)
    start = float(first[1][1]) - float(first[0][1]) if all(first) else 0
    return {"new": len(new), "kept": len(ready) - len(new), "contexts": sum(new), "lanes": lanes, "judges": judges, "start": start,
            "repeated": trace.count(": repeated in a runner of its own")}


class Peak:
    """Measures how much the memory in use on the host and its GPUs grows while a command runs."""

    def __init__(self, device):
        self.device, self.over = device, threading.Event()

    def read(self):
        host = 0
        for line in Path("/proc/meminfo").read_text().splitlines():
            host -= int(line.split()[1]) << 10 if line.startswith("MemAvailable") else 0
        if self.device == "cpu":
            return host, 0
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True)
        return host, sum(int(word) for word in done.stdout.split() if word.isdigit()) << 20

    def watch(self):
        while not self.over.wait(0.1):
            self.most = tuple(map(max, self.most, self.read()))

    def __enter__(self):
        self.first = self.most = self.read()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.host, self.gpu = ((most - first) / (1 << 30) for most, first in zip(self.most, self.first))


def compare_roots(options):
    jobs_list = [int(word) for word in options.jobs.split(",")]
    for root in options.directory:
        print(f"\n{root} on {options.device}")
        print(f"{'jobs':>4} {'':4} {'wall s':>7} {'start':>6} {'new':>4} {'kept':>4} {'contexts s':>10} {'wait':>5} {'load':>5} {'run':>5} "
              f"{'judge':>5} {'none':>5} {'repeated':>8} {'host':>5} {'GPU':>5}  statuses")
        best, verdicts, bare, of_judges = None, set(), None, []
        for jobs in jobs_list:
            for isolation in ("own", "kept"):
                with Peak(options.device) as peak:
                    seconds, done = verify(root, ["--all", "--no-workloads", "--jobs", str(jobs), "--isolation", isolation, *options.options],
                                           options.device, {"REFTEST_TRACE": "1"})
                report = json.loads(done.stdout)
                went = where_seconds_went(done.stderr)
                share = {name: f"{100 * part / max(sum(went['lanes'].values()), 1e-9):4.0f}%" for name, part in went["lanes"].items()}
                of_judges.append((jobs, isolation, went["judges"]))
                verdicts.add(json.dumps([[r["name"], [[c["id"], c["status"], c["reason"]] for c in r["cases"]]]
                                         for r in sorted(report["definitions"], key=lambda r: (r["op_type"], r["name"]))]))
                counts = {name: report["summary"][name] for name in ("passed", "checked", "failed", "error", "skipped", "invalid")}
                print(f"{jobs:4} {isolation:4} {seconds:7.1f} {went['start']:6.1f} {went['new']:4} {went['kept']:4} {went['contexts']:10.1f} "
                      f"{share['waits']} {share['loads']} {share['runs']} {share['judges']} {share['no work']} {went['repeated']:8} "
                      f"{peak.host:5.1f} {peak.gpu:5.1f}  "
                      f"{', '.join(f'{n} {name}' for name, n in counts.items() if n)}", flush=True)
                best = min(seconds, best or seconds)
                bare = bare or [[str(Path(root) / "definitions" / r["op_type"] / (r["name"] + ".json")), r["op_type"], r["name"],
                                 [c["axes"] for c in r["cases"]]] for r in report["definitions"]]
        names = ("inputs", "stages", "checks", "computes", "compares", "other", "hidden")
        print(f"{'jobs':>4} {'':4} " + " ".join(f"{name:>8}" for name in names) + "  seconds of the judges")
        for jobs, isolation, judges in of_judges:
            print(f"{jobs:4} {isolation:4} " + " ".join(f"{judges[name]:8.1f}" for name in names))
        told = run_loops([bare], options.device)[0]
        loop_seconds = told["seconds"]
        print(f"loop {loop_seconds:.1f} s ({told['refused']} of {told['cases']} cases refused their inputs); the fastest run of reftest "
              f"{best:.1f} s: {best / loop_seconds:.2f} times the loop; verdicts of all runs are "
              f"{'equal' if len(verdicts) == 1 else 'NOT EQUAL'}")
        for jobs in jobs_list:
            several = run_loops(divide(bare, told["took"], jobs), options.device)
            most = max(one["seconds"] for one in several)
            print(f"loop in {jobs} processes {most:.1f} s, {most / loop_seconds:.2f} times the loop in one process; its processes have torch "
                  f"and a context after {max(one['ready'] for one in several):.1f} s")


def timed(command, environment=None):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return time.perf_counter() - begin, done


def verify(root, options, device, more=None):
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "REFTEST_PYTHON": os.environ.get("REFTEST_PYTHON", sys.executable), **(more or {})}
        return timed([REFTEST, "--root", str(root), "verify", "--device", device, "--force", "--format", "json", *options], environment)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", nargs="+")
    parser.add_argument("--roots", action="store_true", help="the directories are datasets")
    parser.add_argument("--loop-cases", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", default="4")
    parser.add_argument("--loop", action="store_true", help=argparse.SUPPRESS)
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.options = words[split + 1:]
    if options.loop_cases:
        return loop_cases(options.directory[0], options.device)
    if options.roots:
        return compare_roots(options)
    if len(options.directory) != 1:
        parser.error("without --roots there is one DIRECTORY")
    options.directory = options.directory[0]
    if options.loop:
        return loop(options.directory, options.device)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_problems(options.directory, root)
        bare_seconds, bare = timed([sys.executable, __file__, "--loop", "--device", options.device, str(root)])
        rows = {row["name"]: row for row in map(json.loads, bare.stdout.splitlines())}
        if bare.returncode != 0:
            raise SystemExit(f"the loop ended with {bare.returncode}: {bare.stderr}")
        seconds, done = verify(root, ["--jobs", options.jobs, *options.options], options.device, {"REFTEST_TRACE": "1"})
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise SystemExit(f"reftest exited with {done.returncode} and no JSON: {done.stderr}")
        print_table(rows, report)
        print_runs(done.stderr)
    print(f"\nloop {bare_seconds:.1f} s, reftest {seconds:.1f} s: {seconds / bare_seconds:.2f} times the loop")


def print_runs(trace):
    went = where_seconds_went(trace)
    runs, waits, works = (sums(rf"judge: {title}: ", trace) for title in ("runs for", "seconds of waiting for", "seconds of work for"))
    print(f"\n{'runs for':10} {'runs':>5} {'waits s':>8} {'judge s':>8}")
    for name, count in [*runs.items(), ("all", sum(runs.values()))]:
        print(f"{name:10} {count:5.0f} {sum(waits.values()) if name == 'all' else waits[name]:8.2f} "
              f"{sum(works.values()) if name == 'all' else works[name]:8.2f}")
    print(f"seconds of the lanes: {', '.join(f'{name} {part:.1f}' for name, part in went['lanes'].items())}; the first case began "
          f"after {went['start']:.1f} s; {went['new']} new runners, {went['contexts']:.1f} s until they were ready; {went['kept']} kept ones")


def print_table(rows, report):
    print(f"{'problem':56} {'loop s':>7} {'reftest s':>9}  verdict")
    for result in report["definitions"]:
        name = result["name"].split("/")[-1]
        took = sum(case.get("seconds") or 0 for case in result["cases"])
        why, error = result.get("reason"), rows[name]["error"]
        print(f"{name:56.56} {rows[name]['seconds']:7.2f} {took:9.2f}  {result['status']}{f' ({why})' if why else ''}"
              f"{f'; the loop: {error}' if error else ''}")


if __name__ == "__main__":
    main()
