"""bare_loop - compares reftest with a loop that runs each reference twice and checks nothing.

    python3 bench/bare_loop.py DIRECTORY [--device cuda:0] [--jobs N] [-- OPTION…]

DIRECTORY holds problems of SOL-ExecBench, one directory each, with definition.json and workload.jsonl. Both sides get
a dataset with these definitions that has only the smallest line of each workload file (the fewest bytes of inputs).
reftest runs the small sizes as well, with every check. The loop is one process that imports torch once. The program
prints one line for each problem, then the times of both sides and their ratio. OPTIONs are passed to `reftest verify`.

The benchmark trusts the files: it evaluates their expressions and runs their references without containment."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REFTEST = Path(__file__).resolve().parent.parent / os.environ.get("REFTEST_BUILD", "build") / "reftest"


def axes_of(definition, given):
    """Returns the values of all axes: `given`, the constants, and the expressions, in any order of declaration."""
    values = dict(given)
    declared = definition["axes"]
    values.update({name: axis["value"] for name, axis in declared.items() if "value" in axis})
    for _ in declared:
        for name, axis in declared.items():
            if "expression" in axis and name not in values:
                try:
                    values[name] = eval(axis["expression"], {"__builtins__": {}}, values)
                except NameError:
                    pass  # it needs an axis of a later round
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
    """Writes the problems that have a line without tensor files as definitions/sol/NAME.json with their workloads."""
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
    return torch.randn(shape, device=device, dtype=torch.float32).to(kind)


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
        except Exception as raised:  # other people's code: the loop goes on
            error = f"{type(raised).__name__}: {str(raised).splitlines()[0] if str(raised) else ''}"
        print(json.dumps({"name": path.stem, "seconds": time.perf_counter() - begin, "error": error}), flush=True)


def timed(command, environment=None):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return time.perf_counter() - begin, done


def verify(root, options, device):
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "REFTEST_PYTHON": os.environ.get("REFTEST_PYTHON", sys.executable)}
        return timed([REFTEST, "--root", str(root), "verify", "--device", device, "--force", "--format", "json", *options], environment)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", default="4")
    parser.add_argument("--loop", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("options", nargs="*")
    options = parser.parse_args()
    if options.loop:
        return loop(options.directory, options.device)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_problems(options.directory, root)
        bare_seconds, bare = timed([sys.executable, __file__, "--loop", "--device", options.device, str(root)])
        rows = {row["name"]: row for row in map(json.loads, bare.stdout.splitlines())}
        if bare.returncode != 0:
            raise SystemExit(f"the loop ended with {bare.returncode}: {bare.stderr}")
        seconds, done = verify(root, ["--jobs", options.jobs, *options.options], options.device)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            raise SystemExit(f"reftest exited with {done.returncode} and no JSON: {done.stderr}")
        print_table(rows, report)
    print(f"\nloop {bare_seconds:.1f} s, reftest {seconds:.1f} s: {seconds / bare_seconds:.2f} times the loop")


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
