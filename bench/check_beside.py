"""check_beside - compares `reftest check` with flashinfer-bench's own validation. The program shows which files each of
the two refuses, and how much time and memory each of the two takes.

    python3 bench/check_beside.py [ROOT] [--copies N] [--plant] [--rounds R]

The interpreter must have the package flashinfer-bench (PyPI), and the packages that its module `flashinfer_bench.data`
imports: torch, pydantic, safetensors. Version 0.1.2 of flashinfer-bench has no command that validates a dataset, and
its TraceSet stops at the first invalid file. The program therefore measures a process that parses each file with
flashinfer-bench's pydantic models: definitions with Definition, the lines of workload and trace files with Trace, and
solutions with Solution. Newer versions have `flashinfer-bench validate`, which checks more.

The program works on a copy of ROOT (by default, of the starter dataset). --copies N adds copies of definitions under
other names until there are N definitions. --plant plants one fault in each of several files of the copy. The program
prints a table of the files that reftest or flashinfer-bench refuses. Below the table it prints the median time, the
processor time and the largest resident memory of reftest and of flashinfer-bench. The two run alternately. The resident
memory is at least about 17 MB, because a new process begins as a copy of this program."""

import argparse
import importlib.metadata
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
REFTEST = TOP / os.environ.get("REFTEST_BUILD", "build") / "reftest"


def theirs(root):
    """Parses each file with flashinfer-bench's models. Prints {path: first error}."""
    from flashinfer_bench.data import Definition, Solution, Trace

    def lines(path):
        return [line for line in path.read_text().splitlines() if line.strip()]

    refused = {}
    for pattern, model, texts in (("definitions/*/*.json", Definition, lambda path: [path.read_text()]),
                                  ("workloads/*/*.jsonl", Trace, lines), ("traces/**/*.jsonl", Trace, lines),
                                  ("solutions/**/*.json", Solution, lambda path: [path.read_text()])):
        for path in sorted(Path(root).glob(pattern)):
            for text in texts(path):
                try:
                    model.model_validate_json(text)
                except Exception as error:
                    refused.setdefault(str(path.relative_to(root)), str(error).splitlines()[-2 if "\n" in str(error) else 0].strip())
    print(json.dumps(refused))


def add_copies(root, count):
    paths = sorted(root.glob("definitions/*/*.json"))
    for number in range(max(0, count - len(paths))):
        path = paths[number % len(paths)]
        definition = json.loads(path.read_text())
        definition["name"] += f"_copy{number // len(paths)}"
        (path.parent / (definition["name"] + ".json")).write_text(json.dumps(definition))


def plant(root):
    """Plants one fault in each of several definitions. Returns {path: fault}."""
    def without_axis(d):
        next(iter(d["inputs"].values()))["shape"] = ["nowhere"]

    def other_name(d):
        d["name"] += "x"

    def wrong_dtype(d):
        next(iter(d["outputs"].values()))["dtype"] = "float3"

    faults = {
        "a reference that is no Python": lambda d: d.update(reference=d["reference"] + "\ndef (:\n"),
        "no function run": lambda d: d.update(reference=d["reference"].replace("def run(", "def walk(")),
        "run only in a docstring": lambda d: d.update(reference='"""\ndef run(x):\n    pass\n"""\n'),
        "a size that is no axis": without_axis,
        "a wrong dtype": wrong_dtype,
        "a constraint that is no Python": lambda d: d.update(constraints=["n =="]),
        "no outputs": lambda d: d.pop("outputs"),
        "an axis of an unknown type": lambda d: next(iter(d["axes"].values())).update(type="const", value="many"),
        "a name that is not the file's": other_name,
        "a misspelt field": lambda d: d.update(descripton=d.pop("description", "")),
    }
    planted = {}
    for path, (fault, change) in zip(sorted(root.glob("definitions/*/*.json"))[::3], faults.items()):
        definition = json.loads(path.read_text())
        change(definition)
        path.write_text(json.dumps(definition, indent=1))
        planted[str(path.relative_to(root))] = fault
    workloads = [path for path in sorted(root.glob("workloads/*/*.jsonl"))
                 if f"definitions/{path.parent.name}/{path.stem}.json" not in planted]
    if workloads:
        line = json.loads(workloads[0].read_text().splitlines()[0])
        line["workload"]["axes"] = {}
        workloads[0].write_text(json.dumps(line) + "\n")
        planted[str(workloads[0].relative_to(root))] = "a line without the axes"
        stray = root / "workloads" / "gemm" / "nothing.jsonl"
        stray.write_text(workloads[0].read_text())
        planted[str(stray.relative_to(root))] = "workloads of no definition"
    return planted


def measured(command):
    """Runs a command. Returns (seconds, processor seconds, MB, output)."""
    with tempfile.TemporaryFile("w+") as out:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begin
        out.seek(0)
        text = out.read()
    if not text.strip():
        raise SystemExit(f"{command[0]} ended with {process.returncode} and wrote nothing")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text


def print_times(name, runs):
    seconds, processor, memory, _ = zip(*runs)
    print(f"{name:34} {statistics.median(seconds):8.3f} s  processor {statistics.median(processor):7.3f} s  {max(memory):6.0f} MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=str(TOP))
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.theirs:
        return theirs(options.root)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("definitions", "workloads", "solutions", "traces", "truths", "blob"):
            if (Path(options.root) / name).is_dir():
                shutil.copytree(Path(options.root) / name, root / name)
        add_copies(root, options.copies)
        planted = plant(root) if options.plant else {}
        sides = ([str(REFTEST), "--root", folder, "check", "--format", "json"], [sys.executable, __file__, "--theirs", folder])
        runs = [[measured(command) for command in sides] for _ in range(options.rounds)]
        ours, other = [list(side) for side in zip(*runs)]
        errors = {finding["path"]: finding["message"] for finding in json.loads(ours[0][3])["findings"] if finding["severity"] == "error"}
        notes = {finding["path"]: finding["message"] for finding in json.loads(ours[0][3])["findings"]
                 if "without a description" not in finding["message"] and "there is no workload file" not in finding["message"]}
        refused = json.loads(other[0][3])
        for path in sorted({*errors, *refused, *planted}):
            word = "error" if path in errors else "note" if path in notes else "-"
            print(f"{path:64.64} {planted.get(path, ''):32} reftest: {word:6} flashinfer-bench: {'error' if path in refused else '-'}")
        print(f"\n{len(list(root.glob('definitions/*/*.json')))} definitions")
        print_times("reftest check", ours)
        print_times("flashinfer-bench " + importlib.metadata.version("flashinfer-bench"), other)


if __name__ == "__main__":
    main()
