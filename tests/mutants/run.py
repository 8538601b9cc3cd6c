#!/usr/bin/env python3
"""python3 tests/mutants/run.py BUILD [options] - plants mistakes into correct references, and checks that reftest finds
them. Words after "--" are passed to `reftest verify`.

Every tests/mutants/{family}.py has MUTANTS, a list of (definition, mistake, old, new). `old` occurs exactly once in the
reference of this starter definition, and is replaced by `new`. A new op family needs such a file. A dataset with all
mutants of all families, and with their original definitions, is verified on the CPU, and on the GPU if there is one.
The file may also have a table SMALLER, {definition: (name, {axis: value})}. Mutants of a definition in this table have
these smaller constant axes, because torch takes long for large ones. The dataset then also has the original with the
smaller axes. All mutants run at the small size. Mutants that are not caught there, and the originals, also run at the
medium size. A mutant is caught if its reference fails or raises an exception. A family passes if it has at least ten
mutants, all of them are caught, and the original definitions pass. Prints TAP: the number of mutants caught and
planted, by device and family.
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
LEAST = 10  # the minimum number of mutants of a family


def load_table(path, table):
    """Returns a table of a family's file, or None if there is none."""
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("mutants_" + os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, table, None)


def load_mutants(path):
    """Returns the list of a family's mutants; the list is empty if the family has no file."""
    return load_table(path, "MUTANTS") or []


def find_definition(name, root=PROJECT):
    found = glob.glob(os.path.join(root, "definitions", "*", name + ".json"))
    if len(found) != 1:
        sys.exit(f"mutants: there are {len(found)} definitions named {name} in {root}")
    return found[0]


def smaller(definition, family):
    """Returns a copy of the definition with the name and the constant axes that the family's table SMALLER states, or
    the definition itself if it is not in the table. The copy has no `model:` tags, because its axes contradict the
    models."""
    table = load_table(os.path.join(HERE, family + ".py"), "SMALLER") or {}
    if definition["name"] not in table:
        return definition
    name, constants = table[definition["name"]]
    axes = {**definition["axes"], **{axis: {"type": "const", "value": value} for axis, value in constants.items()}}
    tags = [tag for tag in definition["tags"] if not tag.startswith("model:")]
    return {**definition, "name": name, "tags": tags, "axes": axes}


def write_definition(root, definition):
    folder = os.path.join(root, "definitions", definition["op_type"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, definition["name"] + ".json"), "w") as out:
        json.dump(definition, out, indent=1)


def plant(definition, mistake, old, new):
    count = definition["reference"].count(old)
    if count != 1:
        sys.exit(f"mutants: {definition['name']}, {mistake}: {old!r} occurs {count} times in the reference, not once")
    return {**definition, "reference": definition["reference"].replace(old, new)}


def build_dataset(root, families, with_originals=True, small_constants=True):
    """Writes the mutants and, if `with_originals` is true, the originals. Returns {mutant's name: (family, definition,
    mistake)} and {original's name: family}. If `small_constants` is false, mutants keep the constant axes of the
    starter definitions."""
    planted, originals = {}, {}
    for family in families:
        for number, (name, mistake, old, new) in enumerate(load_mutants(os.path.join(HERE, family + ".py"))):
            with open(find_definition(name)) as source:
                starter = json.load(source)
            definition = smaller(starter, family) if small_constants else starter
            for original in (definition, starter):
                if with_originals:
                    write_definition(root, original)
                originals[original["name"]] = family
            mutant = plant(definition, mistake, old, new)
            mutant["name"] += f"_mutant{number}"
            write_definition(root, mutant)
            planted[mutant["name"]] = (family, name, mistake)
    return planted, originals


def verify(build, root, names, words, codes=(0, 1)):
    """Runs verify on the definitions `names`, or on all, and returns {name: its part of the JSON}. Ends the program if
    the exit status is not in `codes`. Runs verify without diagnoses, because diagnoses take time."""
    command = [os.path.join(build, "reftest"), "--root", root, "verify", "--no-workloads", "--format", "json", "--no-diagnosis", *words]
    done = subprocess.run(command + names, stdout=subprocess.PIPE, check=False)
    if done.returncode not in codes:
        sys.exit(f"mutants: {' '.join(command)} exited with {done.returncode}")
    return {d["name"]: d for d in json.loads(done.stdout)["definitions"]}


def is_caught(definition):
    guilty = [c for c in definition["cases"] if c["status"] == "failed" or c["reason"] == "raised"]
    return definition["status"] in ("failed", "error") and len(guilty) > 0


def judge(build, root, planted, originals, words, all_sizes=True):
    """Returns two dicts: whether each mutant is caught, and whether each original passes. If `all_sizes` is false, only
    the small size is verified."""
    if not planted:
        return {}, {}
    small = verify(build, root, [], [*words, "--sizes", "small"])
    left = [name for name in planted if not is_caught(small[name])]
    more = left + (sorted(originals) if all_sizes else [])
    medium = verify(build, root, more, [*words, "--sizes", "medium"]) if more else {}
    found = {name: [sizes[name] for sizes in (small, medium) if name in sizes] for name in [*planted, *originals]}
    return {n: any(map(is_caught, found[n])) for n in planted}, {n: all(d["status"] == "passed" for d in found[n]) for n in originals}


def tell(number, device, family, planted, originals, caught, passed, least=LEAST):
    """Prints a line of TAP for a family, and returns whether the family passes."""
    mine = [name for name in planted if planted[name][0] == family]
    hits = sum(caught[name] for name in mine)
    wrong = [f"not caught: {planted[n][1]}: {planted[n][2]}" for n in mine if not caught[n]]
    wrong += [f"the correct {n} does not pass" for n, whose in originals.items() if whose == family and not passed[n]]
    if len(mine) < least:
        wrong.append(f"{len(mine)} mutants are fewer than {least}")
    print(f"{'not ok' if wrong else 'ok'} {number} - {device}: {family} {hits}/{len(mine)} caught")
    for sentence in wrong:
        print(f"# {sentence}")
    return not wrong


def op_files():
    """Returns the op families, which are the folders of kernels/ that contain a C file of the same name. core/ and
    common/ contain no such file."""
    files = glob.glob(os.path.join(PROJECT, "kernels", "*", "*.c"))
    return [file for file in files if os.path.basename(file) == os.path.basename(os.path.dirname(file)) + ".c"]


def options_of(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--family", action="append", help="only this one; may be repeated")
    parser.add_argument("--device", action="append", help="as reftest takes it (default: cpu, and cuda:0 if there)")
    options = parser.parse_args(words)
    gpu = glob.glob("/dev/nvidia[0-9]*") and os.path.exists(os.path.join(options.build, "libreftest_kernels_cuda.so"))
    options.device = options.device or ["cpu"] + (["cuda:0"] if gpu else [])
    options.family = options.family or sorted(os.path.basename(os.path.dirname(file)) for file in op_files())
    return options


def main():
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, words = options_of(sys.argv[1:at]), sys.argv[at + 1 :]
    root = tempfile.mkdtemp(prefix="reftest-mutants-")
    good = True
    try:
        planted, originals = build_dataset(root, options.family)
        print(f"1..{len(options.device) * len(options.family)}", flush=True)
        for d, device in enumerate(options.device):
            lanes = ["--device", device, "--jobs", str(min(os.cpu_count(), 4))]
            caught, passed = judge(options.build, root, planted, originals, lanes + words)
            for f, family in enumerate(options.family):
                number = 1 + d * len(options.family) + f
                good &= tell(number, device, family, planted, originals, caught, passed)
    finally:
        shutil.rmtree(root)
    sys.exit(not good)


if __name__ == "__main__":
    main()
