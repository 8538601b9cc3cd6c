"""Plants mistakes into correct references and asks reftest to find them: python3 tests/mutants/run.py BUILD [options].
Words after "--" go to `reftest verify` ("-- --device cuda:0").

Every tests/mutants/{family}.py holds MUTANTS, a list of (definition, mistake, old, new): `old` stands exactly once in that
starter definition's reference and is replaced by `new`. All mutants of all families, and the definitions that they were
made from, become one dataset; one `reftest verify` judges it. A mutant is caught when it fails or raises, by its own
doing; an original that does not pass, or a mutant that is merely skipped or timed out, fails the run. Prints
caught/planted by family.
"""
import argparse
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))


def load_mutants(path):
    spec = importlib.util.spec_from_file_location("mutants_" + os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MUTANTS


def find_definition(name):
    found = glob.glob(os.path.join(PROJECT, "definitions", "*", name + ".json"))
    if len(found) != 1:
        sys.exit(f"mutants: there are {len(found)} starter definitions named {name}")
    return found[0]


def write_definition(root, definition):
    folder = os.path.join(root, "definitions", definition["op_type"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, definition["name"] + ".json"), "w") as out:
        json.dump(definition, out, indent=1)


def plant(definition, mistake, old, new):
    count = definition["reference"].count(old)
    if count != 1:
        sys.exit(f"mutants: {definition['name']}, {mistake}: {old!r} stands {count} times in the reference, not once")
    return {**definition, "reference": definition["reference"].replace(old, new)}


def build_dataset(root, families):
    """Writes originals and mutants. Gives {mutant name: (family, definition, mistake)} and the originals' names."""
    planted, originals = {}, set()
    for family in families:
        for number, (name, mistake, old, new) in enumerate(load_mutants(os.path.join(HERE, family + ".py"))):
            with open(find_definition(name)) as source:
                definition = json.load(source)
            write_definition(root, definition)
            originals.add(name)
            mutant = plant(definition, mistake, old, new)
            mutant["name"] = f"{name}_mutant{number}"
            write_definition(root, mutant)
            planted[mutant["name"]] = (family, name, mistake)
    return planted, originals


def verify(build, root, words):
    command = [os.path.join(build, "reftest"), "--root", root, "verify", "--all", "--format", "json", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"mutants: {' '.join(command)} exited with {done.returncode}")
    return {d["name"]: d for d in json.loads(done.stdout)["definitions"]}


def is_caught(definition):
    guilty = [c for c in definition["cases"] if c["status"] == "failed" or c["reason"] == "raised"]
    return definition["status"] in ("failed", "error") and len(guilty) > 0


def tell(planted, originals, found):
    bad = 0
    for name in sorted(originals):
        if found[name]["status"] != "passed":
            print(f"  the correct {name} is {found[name]['status']} ({found[name]['reason']})")
            bad += 1
    for family in sorted({family for family, _, _ in planted.values()}):
        mine = [(name, who) for name, who in planted.items() if who[0] == family]
        missed = [(name, who) for name, who in mine if not is_caught(found[name])]
        print(f"{family:16} {len(mine) - len(missed)}/{len(mine)} caught")
        for name, (_, original, mistake) in missed:
            print(f"  not caught: {original}: {mistake}: {found[name]['status']}")
        bad += len(missed)
    print(f"{len(planted) + len(originals) - bad} passed, {bad} failed")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    words = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    options = parser.parse_args(sys.argv[1 : len(sys.argv) - len(words) - ("--" in sys.argv)])
    every = sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(HERE, "*.py")) if p != os.path.abspath(__file__))
    root = tempfile.mkdtemp(prefix="reftest-mutants-")
    try:
        planted, originals = build_dataset(root, options.family or every)
        sys.exit(1 if tell(planted, originals, verify(options.build, root, words)) else 0)
    finally:
        shutil.rmtree(root)


main()
