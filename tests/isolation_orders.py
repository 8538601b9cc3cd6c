"""isolation_orders - verifies the starter definitions in random orders, with runners that several definitions share.
Compares all verdicts with those of a run in which each definition has its own runner.

    python3 tests/isolation_orders.py BUILD [--device cpu] [--orders 100] [--parallel 1] [--op-type TYPE…] [--seed N]

reftest verifies definitions in the order of their paths, so the script makes a copy of the dataset with new names for
each order. The compared parts of a verdict are the status, the reason and every figure of every output. The exit status
is 1 if a verdict differs, or if no two definitions shared a runner."""

import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def write_dataset(root, definitions, names):
    for path, name in zip(definitions, names):
        definition = json.loads(path.read_text())
        # the name of the folder is the op_type, which decides the family, so only names inside folders change
        folder = root / "definitions" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        definition["name"] = f"{name}_{path.stem}"
        (folder / f"{definition['name']}.json").write_text(json.dumps(definition))


def verdicts(reftest, root, options, isolation):
    command = [reftest, "--root", root, "verify", "--all", "--force", "--alone", "--format", "json", "--sizes", "small", "--device", options.device,
               "--jobs", "2", "--isolation", isolation]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "REFTEST_TRACE": "1"})
    report = json.loads(done.stdout)
    kept = done.stderr.count('{"ready": true, "seconds": 0}')
    return {(result["name"].partition("_")[2], case["id"]): [case["status"], case["reason"], case["outputs"]]
            for result in report["definitions"] for case in result["cases"]}, kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--parallel", type=int, default=1, help="how many orders are verified at a time")
    parser.add_argument("--op-type", action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    reftest, chance = str(TOP / options.build / "reftest"), random.Random(options.seed)
    os.environ.setdefault("REFTEST_PYTHON", str(TOP / ".venv/bin/python"))
    definitions = sorted(path for path in (TOP / "definitions").glob("*/*.json") if not options.op_type or path.parent.name in options.op_type)
    expected, differences, kept_in_all = None, 0, 0
    orders = []
    for _ in range(options.orders + 1):
        orders.append([f"n{number:04}" for number in range(len(definitions))])
        chance.shuffle(orders[-1])

    def verify(order):  # in order 0, each definition has its own runner
        with tempfile.TemporaryDirectory() as folder:
            write_dataset(Path(folder), definitions, orders[order])
            return verdicts(reftest, folder, options, "kept" if order > 0 else "own")

    pool = concurrent.futures.ThreadPoolExecutor(options.parallel)
    for order, (found, kept) in enumerate(pool.map(verify, range(len(orders)))):
        expected, kept_in_all = expected or found, kept_in_all + kept
        for key in sorted(expected.keys() | found.keys()):
            if expected.get(key) != found.get(key):
                differences += 1
                print(f"order {order}: {key}: {json.dumps(found.get(key))[:300]} instead of {json.dumps(expected.get(key))[:300]}")
        print(f"order {order}: {len(found)} cases, runners kept {kept} times", flush=True)
    print(f"{options.orders} orders, {differences} verdicts differ")
    return differences > 0 or kept_in_all == 0


sys.exit(main())
