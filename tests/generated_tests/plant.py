"""plant.py - plants mistakes into a dataset, generates its pytest files and runs them: python3 tests/generated_tests/plant.py
BUILD [options] [-- pytest's words].

From each tests/mutants/{family}.py, the script takes a few MUTANTS, of different definitions if possible, and all
mutants whose mistake matches --also. It writes these mutants as definitions beside the correct definitions in the
working directory, with smaller constants if tests/mutants/{family}.py gives some (SMALLER). Then `reftest generate` and
pytest run, with reftest's own kernels and torch as the only ground truths. Every class of a correct definition must
pass, and every class of a mutant must fail. Other libraries are hidden (hidden_libraries.py). Prints the number of
mutants caught and planted, by family.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

from hidden_libraries import library_modules

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(PROJECT, "tests", "mutants"))
from run import load_mutants, smaller  # noqa: E402


def choose(mutants, count, also):
    """Returns at most `count` mutants, the first one of each definition, and every mutant whose mistake matches
    `also`."""
    seen = {}
    for mutant in mutants:
        seen.setdefault(mutant[0], mutant)
    first = list(seen.values())[:count]
    return [
        mutant
        for mutant in mutants
        if mutant in first or (also and re.search(also, mutant[1]))
    ]


def class_name(name):
    return "Test" + "".join(
        word[:1].upper() + word[1:] for word in name.replace("-", "_").split("_")
    )


def write(definition):
    folder = os.path.join("definitions", definition["op_type"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, definition["name"] + ".json"), "w") as out:
        json.dump(definition, out, indent=1)


def plant(families, count, also):
    """Writes the definitions. Returns {class: (family, definition, mistake)} of the mutants, and the classes of the
    correct definitions."""
    planted, right = {}, set()
    for family in families:
        mutants = load_mutants(
            os.path.join(PROJECT, "tests", "mutants", family + ".py")
        )
        for number, (name, mistake, old, new) in enumerate(
            choose(mutants, count, also.get(family, also.get(None)))
        ):
            (path,) = glob.glob(
                os.path.join(PROJECT, "definitions", "*", name + ".json")
            )
            with open(path) as file:
                definition = smaller(json.load(file), family)
            if definition["reference"].count(old) != 1:
                sys.exit(
                    f"plant: {name}: {old!r} does not occur exactly once in the reference"
                )
            write(definition)
            right.add(class_name(definition["name"]))
            mutant = f"{definition['name']}_mutant{number}"
            write(
                {
                    **definition,
                    "name": mutant,
                    "reference": definition["reference"].replace(old, new),
                }
            )
            planted[class_name(mutant)] = (family, name, mistake)
    return planted, right


def run_pytest(words):
    """Runs pytest with this interpreter and returns {class: [outcome of each test]}."""
    with open("hides.py", "w") as out:
        out.write(
            f"import sys\n\nsys.modules.update(dict.fromkeys({library_modules()}))\n"
        )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "hides",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "--junit-xml=pytest.xml",
    ]
    done = subprocess.run(
        [*command, "tests/references", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        sys.exit(f"plant: pytest exited with {done.returncode}: {done.stdout[-3000:]}")
    outcomes = {}
    for case in xml.etree.ElementTree.parse("pytest.xml").getroot().iter("testcase"):
        name = case.get("classname").rpartition(".")[2]
        kinds = [
            child.tag for child in case if child.tag in ("failure", "error", "skipped")
        ]
        outcomes.setdefault(name, []).append(
            (case.get("name"), kinds[0] if kinds else "passed")
        )
    return outcomes


def numerical_failures(outcomes):
    parts = ("numerical", "against", "edge", "dtype", "shape", "determinism", "kept")
    return [
        name
        for name, kind in outcomes
        if kind == "failure" and any(part in name for part in parts)
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--family", action="append")
    parser.add_argument("--count", type=int, default=2, help="mutants of each family")
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="[FAMILY:]REGEX",
        help="mutants by their mistakes",
    )
    if os.path.exists("definitions"):
        sys.exit(
            "plant: there are definitions here already; run it in an empty directory"
        )
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    options = parser.parse_args(
        sys.argv[1 : len(sys.argv) - len(words) - ("--" in sys.argv)]
    )
    every = sorted(
        os.path.basename(path)[:-3]
        for path in glob.glob(os.path.join(PROJECT, "tests", "mutants", "*.py"))
    )
    families = options.family or [
        name for name in every if os.path.isdir(os.path.join(PROJECT, "kernels", name))
    ]
    also = {
        words[0] if len(words) > 1 else None: words[-1]
        for words in (text.split(":", 1) for text in options.also)
    }
    planted, right = plant(families, options.count, also)
    program = [os.path.join(options.build, "reftest"), "--root", ".", "generate"]
    own = {
        name: value for name, value in os.environ.items() if name != "REFTEST_KERNELS"
    }
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env=own)
    found = run_pytest(words)
    bad = 0
    for name in sorted(right):
        wrong = [
            test
            for test, kind in found.get(name, [("all of it", "failure")])
            if kind in ("failure", "error")
        ]
        compared = [
            test
            for test, kind in found.get(name, [])
            if kind == "passed" and "numerical" in test
        ]
        if wrong or not compared:
            print(f"  the correct {name}: failed {wrong}, compared {compared}")
            bad += 1
    for family in families:
        mine = {name: who for name, who in planted.items() if who[0] == family}
        missed = [name for name in mine if not numerical_failures(found.get(name, []))]
        print(f"{family:16} {len(mine) - len(missed)}/{len(mine)} caught")
        for name in missed:
            print(f"  not caught: {mine[name]}")
        bad += len(missed)
    sys.exit(bad > 0)


main()
